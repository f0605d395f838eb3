package notices

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/outbox"
)

// Config says where notices go.
type Config struct {
	// URL is the provider's address. Empty: the file.
	URL string
	// Token, unless empty, is sent as Authorization: Bearer.
	Token string
	// File is where notices are appended without a provider.
	File string
	// Egress is which addresses may be dialled.
	Egress egress.Policy
	// Timeout is of one attempt. Defaults to 15 s.
	Timeout time.Duration
}

// Provider delivers notices. It is safe for concurrent use. Close it.
type Provider struct {
	config    Config
	transport *http.Transport
	file      sync.Mutex
}

// New returns the provider that a configuration names. It connects to nothing yet.
func New(config Config) (*Provider, error) {
	if config.Timeout == 0 {
		config.Timeout = 15 * time.Second
	}
	switch {
	case config.URL != "":
		if err := config.Egress.CheckURL(config.URL); err != nil {
			return nil, fmt.Errorf("prepare notices: %w", err)
		}
	case config.File == "":
		return nil, errors.New("prepare notices: neither a provider's address nor a file is given")
	}
	return &Provider{config: config, transport: &http.Transport{
		Proxy:                  nil,
		DialContext:            config.Egress.Dialer(config.Timeout, nil).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    config.Timeout,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
		IdleConnTimeout:        4 * time.Second,
	}}, nil
}

// Close closes idle connections.
func (p *Provider) Close() { p.transport.CloseIdleConnections() }

// Deliver makes one attempt. It is an outbox.Outside handler.
func (p *Provider) Deliver(ctx context.Context, d outbox.Delivery) error {
	request, err := requestOf(d.Message)
	if err != nil {
		return outbox.Permanent(err)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return outbox.Permanent(err)
	}
	if p.config.URL == "" {
		return p.append(body)
	}
	return p.post(ctx, request.Key, body)
}

func (p *Provider) post(ctx context.Context, key string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.URL, bytes.NewReader(body))
	if err != nil {
		return outbox.Permanent(errors.New("the provider's address cannot be used"))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	if p.config.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.config.Token)
	}
	// The transport itself: nothing follows redirects, and no error repeats the address.
	response, err := p.transport.RoundTrip(request)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &outbox.Failure{Class: outbox.Failed, Err: errors.New("the provider did not answer in time")}
	case err != nil:
		return &outbox.Failure{Class: outbox.Unreachable, Err: errors.New("the provider could not be reached")}
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	return judge(response.StatusCode)
}

// judge is what the provider's answer means. A key that it knows is accepted: 409 says that the notice went out before.
func judge(status int) error {
	err := fmt.Errorf("the provider answered %d", status)
	switch {
	case status >= 200 && status <= 299, status == http.StatusConflict:
		return nil
	case status == http.StatusTooManyRequests:
		return outbox.RetryAfter(time.Minute, err)
	case status == http.StatusRequestTimeout, status >= 500:
		return &outbox.Failure{Class: outbox.Failed, Err: err, Status: status}
	}
	return &outbox.Failure{Class: outbox.Rejected, Err: err, Status: status}
}

// append writes a line, and returns once it is on the disk.
func (p *Provider) append(body []byte) error {
	p.file.Lock()
	defer p.file.Unlock()
	file, err := regular.Open(p.config.File, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		if err = regular.Alone(file); err == nil {
			err = writeLine(file, body)
		}
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return &outbox.Failure{Class: outbox.Unreachable, Err: errors.New("the file of notices cannot be written")}
	}
	return nil
}

// writeLine appends a line of its own, also after one that a crash or a full disk has torn, which would spoil it.
func writeLine(file *os.File, line []byte) error {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if last := make([]byte, 1); end > 0 {
		if _, err := file.ReadAt(last, end-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Sync())
}
