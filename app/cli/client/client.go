package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer bounds what is read of one answer: a page of messages with the largest payloads fits many times over.
const maxAnswer = 256 << 20

// patience is how long one request may take. A command's own deadline, a setting of the server, is far below it.
const patience = time.Minute

// Client speaks to one Posthorn. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string
	token string
	once  string
	where string
	close func() error
}

// Unix speaks over a unix socket, as the user of this process.
func Unix(path string) *Client {
	dialer := &net.Dialer{}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) },
	}
	return &Client{http: newHTTP(transport), base: "http://localhost", where: path, close: func() error {
		transport.CloseIdleConnections()
		return nil
	}}
}

// ErrBadURL is returned, wrapped, for a server address that is no http or https URL.
var ErrBadURL = errors.New("the address is not like https://host:7678")

// Remote speaks to the server at an address, with an API token; "" sends none.
func Remote(address, token string) (*Client, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.User != nil || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("read server address: %w", ErrBadURL)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Client{http: newHTTP(transport), base: strings.TrimRight(address, "/"), token: token, where: address, close: func() error {
		transport.CloseIdleConnections()
		return nil
	}}, nil
}

// InProcess speaks to a handler in this process; closing the client calls closeHandler.
func InProcess(handler http.Handler, closeHandler func() error) *Client {
	return &Client{http: newHTTP(inProcess{handler}), base: "http://localhost", where: "the data folder", close: closeHandler}
}

func newHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Once returns a client whose command may be sent again until an answer comes, and is carried out once: it carries an Idempotency-Key.
func (c *Client) Once(key string) *Client {
	keyed := *c
	keyed.once = key
	return &keyed
}

// Where says what the client speaks to: a path, or an address.
func (c *Client) Where() string { return c.where }

// Close releases the connection, or what InProcess was given.
func (c *Client) Close() error { return c.close() }

// Do sends body as JSON, unless it is nil, and reads the answer into a value, unless that is nil. A json.RawMessage as body goes out
// byte for byte, as an answer does into a *json.RawMessage.
func (c *Client) Do(ctx context.Context, method, path string, body, into any) error {
	answer, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	switch into := into.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*into = answer
		return nil
	default:
		if err := json.Unmarshal(answer, into); err != nil {
			return fmt.Errorf("read the answer of %s %s: %w", method, path, err)
		}
		return nil
	}
}

// Bytes gets a resource as it is stored.
func (c *Client) Bytes(ctx context.Context, path string) ([]byte, error) {
	return c.send(ctx, http.MethodGet, path, nil)
}

func (c *Client) send(ctx context.Context, method, path string, body any) ([]byte, error) {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, &Unreachable{Where: c.where, Cause: err}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, &Unreachable{Where: c.where, Cause: err}
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, problemOf(response, answer)
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	switch body := body.(type) {
	case nil:
	case json.RawMessage:
		content = bytes.NewReader(body)
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.once != "" {
		request.Header.Set("Idempotency-Key", c.once)
	}
	return request, nil
}

// Unreachable is returned when no complete answer came. The command may have been carried out all the same.
type Unreachable struct {
	Where string
	Cause error
}

// Error names the cause without the URL, which *url.Error would repeat.
func (u *Unreachable) Error() string {
	cause := u.Cause
	if wrapped := new(url.Error); errors.As(cause, &wrapped) {
		cause = wrapped.Err
	}
	return fmt.Sprintf("reach Posthorn at %s: %v", u.Where, cause)
}

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.Cause }

// Hint says what to look at.
func (u *Unreachable) Hint() string {
	return "is it running? `posthorn serve` starts it, and its log says why it ended"
}
