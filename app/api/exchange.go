package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// exchange is one request and its answer.
type exchange struct {
	*http.Request
	w     http.ResponseWriter
	api   *server
	query url.Values
	body  []byte
	// room is what the body takes up; nil until there is one.
	room *room
}

// reply is what a route answers.
type reply struct {
	status int
	// body is written as JSON, unless it is bytes.
	body any
}

const bodyPatience = 30 * time.Second

// readBody reads a JSON body within its bound, which is the setting's or, where it is not zero, the route's own.
func (x *exchange) readBody(own int64, public bool) (err error) {
	media, parameters, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	charset := strings.ToLower(parameters["charset"])
	if err != nil || media != "application/json" || charset != "" && charset != "utf-8" || x.Header.Get("Content-Encoding") != "" {
		return &mediator.Refusal{Kind: mediator.Unsupported, Code: "unsupported-media-type", Sentence: "The body must be plain JSON in UTF-8.",
			Hint: "Send Content-Type: application/json and no Content-Encoding."}
	}
	most := x.api.Records().Bytes("body-limit")
	if own > 0 {
		most = min(most, own)
	}
	large := &mediator.Refusal{Kind: mediator.TooLarge, Code: "body-too-large", Sentence: "The body is larger than " + strconv.FormatInt(most, 10) + " bytes.",
		Hint: "Send less at once; the setting body-limit bounds what most routes take."}
	if x.ContentLength > most {
		return large
	}
	control := http.NewResponseController(x.w)
	if control.SetReadDeadline(time.Now().Add(bodyPatience)) == nil {
		defer func() {
			if err == nil {
				_ = control.SetReadDeadline(time.Time{})
				return
			}
			// The rest is not waited for: without a deadline net/http would, and for ever.
			x.body = nil
			x.w.Header().Set("Connection", "close")
			_ = control.SetReadDeadline(time.Now())
		}()
	}
	x.room = x.api.bodies.room(public, x.api.Records().Bytes("bodies-limit"))
	x.body, err = io.ReadAll(x.room.reader(http.MaxBytesReader(x.w, x.Body, most)))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return large
	case errors.Is(err, errBodies):
		return err
	case err != nil:
		return &mediator.Refusal{Kind: mediator.Malformed, Code: "unreadable-body", Sentence: "The body broke off, or came too slowly."}
	}
	return nil
}

// readQuery refuses parameters that the route does not have, and repeated ones.
func (x *exchange) readQuery(params []parameter) error {
	query, err := url.ParseQuery(x.URL.RawQuery)
	if err != nil {
		return &mediator.Refusal{Kind: mediator.Malformed, Code: "malformed-query", Sentence: "The query of the URL cannot be read.", Hint: "Percent-encode its values."}
	}
	var wrong mediator.Violations
	for name, values := range query {
		known := slices.ContainsFunc(params, func(p parameter) bool { return p.name == name })
		switch {
		case !known && harmlessName.MatchString(name):
			wrong.Add(name, "is not known here")
		case !known:
			wrong.Add("", "a parameter is not known here")
		case len(values) > 1:
			wrong.Add(name, "must be there once")
		case values[0] != strings.ToValidUTF8(values[0], "") || strings.ContainsRune(values[0], 0):
			wrong.Add(name, "must be text in UTF-8")
		}
	}
	x.query = query
	return wrong.Refusal("unknown-parameter", "The query of the URL is not as it should be.", "/openapi.json names the parameters of each route.")
}

// number reads a whole number from the query; 0 when it is not there.
func (x *exchange) number(name string) (int, error) {
	if !x.query.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(x.query.Get(name), 10, 32)
	if err != nil || n < 1 {
		return 0, mediator.Violations{{Path: name, Message: "must be a whole number from 1"}}.Refusal("bad-"+name, "A parameter is not a whole number.", "")
	}
	return int(n), nil
}

// moment reads a time from the query; the zero time when it is not there.
func (x *exchange) moment(name string) (time.Time, error) {
	if !x.query.Has(name) {
		return time.Time{}, nil
	}
	// In a query a plus sign that was not encoded arrives as a space.
	at, ok := parseMoment(strings.Replace(x.query.Get(name), " ", "+", 1))
	if !ok {
		return time.Time{}, mediator.Violations{{Path: name, Message: "must be a time with its offset: 2026-01-31T09:30:00+01:00"}}.
			Refusal("bad-time", "A parameter is no time as RFC 3339 writes it.", "")
	}
	return at, nil
}

// parseMoment reads a time as RFC 3339 writes it. Its year in UTC has four digits, as it would have to when it is written again: an offset
// can carry a time beyond them.
func parseMoment(text string) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339, text)
	at = at.UTC()
	return at, err == nil && at.Year() >= 1 && at.Year() <= 9999
}

// actFor makes the caller act for another tenant, which only the machine's own user may.
func (x *exchange) actFor(tenant *string) error {
	by, ok := access.From(x.Context())
	if tenant == nil || !ok || outbox.TenantID(*tenant) == by.Tenant {
		return nil
	}
	if !outbox.ValidID(*tenant) {
		return mediator.Violations{{Path: "/tenant", Message: "must be 1 to 64 of A-Z a-z 0-9 _ -"}}.Refusal("invalid", "No tenant can have such a name.", "")
	}
	if !by.Local() {
		return access.ErrForbidden
	}
	by.Tenant = outbox.TenantID(*tenant)
	x.Request = x.WithContext(access.With(x.Context(), by))
	return nil
}

// receipt is the one of the request's Idempotency-Key; nil without one.
func (x *exchange) receipt() (*mediator.Receipt, error) {
	values := x.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return nil, nil
	}
	key := values[0]
	if len(values) > 1 || key == "" || len(key) > 200 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, mediator.Violations{{Path: "Idempotency-Key", Message: "must be there once, with 1 to 200 printable ASCII characters"}}.
			Refusal("bad-idempotency-key", "The Idempotency-Key cannot be used.", "A random UUID is a good one.")
	}
	r := mediator.KeyReceipt(key, mediator.Fingerprint([]byte(x.Method), []byte(x.URL.Path), x.body))
	return &r, nil
}

// answer turns what a command was answered into a reply.
func (x *exchange) answer(a mediator.Answer) reply {
	if a.Replayed {
		x.w.Header().Set("Idempotency-Replayed", "true")
	}
	return reply{status: a.Status, body: json.RawMessage(a.Body)}
}

func (x *exchange) write(r reply) {
	if raw, ok := r.body.([]byte); ok {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
		x.w.WriteHeader(r.status)
		_, _ = x.w.Write(raw) // the caller is gone if this fails
		return
	}
	// Encoded before anything is written: what cannot be must not look like an empty answer.
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r.body); err != nil {
		x.api.fail(x.w, x.Request, fmt.Errorf("write the answer: %w", err))
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(r.status)
	_, _ = x.w.Write(body.Bytes()) // the caller is gone if this fails
}
