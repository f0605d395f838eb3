package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// known is what a sentinel error becomes.
type known struct {
	err     error
	problem Problem
	// told: the error's own text is the detail; it is written for callers.
	told bool
}

var sentinels = []known{
	{err: access.ErrUnauthenticated, problem: Problem{Status: 401, Code: "unauthenticated", Detail: "No valid API token was given.",
		Hint: "Send Authorization: Bearer with a token that posthorn tokens create printed."}},
	{err: access.ErrForbidden, told: true, problem: Problem{Status: 403, Code: "forbidden", Hint: "Use a token with the role, and of the tenant, that this needs."}},
	{err: access.ErrInvalidToken, told: true, problem: Problem{Status: 422, Code: "invalid-token"}},
	{err: access.ErrTokenExists, problem: Problem{Status: 409, Code: "token-exists", Detail: "An API token of this name is in force already.",
		Hint: "Choose another name, or revoke that one first."}},
	{err: access.ErrTooManyTokens, problem: Problem{Status: 409, Code: "too-many-tokens", Detail: "Too many API tokens are in force.",
		Hint: "Revoke those that are not used."}},
	{err: access.ErrNoToken, problem: Problem{Status: 404, Code: "no-token", Detail: "No API token in force has this id or name."}},

	{err: inbound.ErrUnverified, problem: Problem{Status: 401, Code: "unverified", Detail: "The source is not known, or its signature does not fit the body, the id and the time.",
		Hint: "See the runbook refused-inbound-events."}},
	{err: session.ErrBadProof, problem: Problem{Status: 401, Code: "bad-proof", Detail: "This link or API token does not sign in.",
		Hint: "A link works once, for a quarter of an hour; posthorn link makes a new one."}},

	{err: errBodies, problem: Problem{Status: 503, Code: "bodies-full", Detail: "The requests that are being read take up as much memory as they may; nothing was changed.",
		Hint: "Send it again a little later; the setting bodies-limit is the bound.", retryAfter: "2"}},
	{err: outbox.ErrQueueFull, problem: Problem{Status: 503, Code: "queue-full", Detail: "As many commands wait as the writer allows; nothing was changed.",
		Hint: "Send it again a little later, with the same Idempotency-Key.", retryAfter: "1"}},
	{err: outbox.ErrDeadline, problem: Problem{Status: 503, Code: "deadline", Detail: "The command waited too long and was not started; nothing was changed.",
		Hint: "Send it again a little later.", retryAfter: "1"}},
	{err: outbox.ErrStoreFull, problem: Problem{Status: 507, Code: "store-full", Detail: "The disk, or the database's size limit, has no room; nothing was changed.",
		Hint: "Make room: deliveries go on meanwhile."}},
	{err: store.ErrDiskLow, problem: Problem{Status: 507, Code: "disk-low", Detail: "The disk is nearly full, and what it has left is for what was accepted before; nothing was changed.",
		Hint: "Make room: deliveries go on meanwhile, and this is accepted again by itself."}},
	{err: outbox.ErrStoreBusy, problem: Problem{Status: 503, Code: "store-busy", Detail: "Another process holds the database; nothing was changed.",
		Hint: "Send it again a little later.", retryAfter: "2"}},
	{err: outbox.ErrStoreIO, problem: Problem{Status: 503, Code: "store-unavailable", Detail: "The database cannot be read or written; nothing was changed.",
		Hint: "See /readyz and the log.", retryAfter: "10"}},
	{err: outbox.ErrInDoubt, problem: Problem{Status: 500, Code: "in-doubt", Detail: "The commit failed in a way that leaves open whether it happened.",
		Hint: "Send it again, with the same Idempotency-Key, once Posthorn runs again."}},
	{err: outbox.ErrCorrupt, problem: Problem{Status: 500, Code: "store-damaged", Detail: "The database file is damaged.", Hint: "See the log."}},
	{err: store.ErrReplaced, problem: Problem{Status: 503, Code: "store-replaced", Detail: "The database file was removed or replaced; nothing was changed.",
		Hint: "Posthorn ends. Put the file back or restore a backup, start it, and send this again.", retryAfter: "10"}},
	{err: outbox.ErrClosed, problem: Problem{Status: 503, Code: "stopping", Detail: "Posthorn is stopping; nothing was changed.",
		Hint: "Send it again a little later.", retryAfter: "5"}},
	{err: destinations.ErrUnsettled, problem: Problem{Status: 503, Code: "not-settled-yet", Detail: "The outcome is taken, and not on the disk yet.",
		Hint: "Send it again a little later. When the answer is then stale-fence, see what became of the delivery.", retryAfter: "2"}},
	{err: context.Canceled, problem: Problem{Status: 503, Code: "cancelled", Detail: "The request ended before it was started; nothing was changed."}},
}

var statuses = map[mediator.Kind]int{
	mediator.Malformed: http.StatusBadRequest, mediator.Missing: http.StatusNotFound, mediator.Conflict: http.StatusConflict,
	mediator.TooLarge: http.StatusRequestEntityTooLarge, mediator.Unsupported: http.StatusUnsupportedMediaType,
	mediator.Invalid: http.StatusUnprocessableEntity, mediator.Forbidden: http.StatusForbidden,
}

// Refuse answers an error for a route that others serve, as the API's own do.
func Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	problem, _ := problemOf(err)
	problem.write(w)
}

// problemOf is the one place where errors become answers. A false second result says that the error is none that a caller can be told of.
func problemOf(err error) (*Problem, bool) {
	p, expected := sorted(err)
	if p.Hint == "" {
		p.Hint = p.advice()
	}
	return p, expected
}

// advice is the hint of a problem that has none of its own.
func (p *Problem) advice() string {
	switch {
	case len(p.Errors) > 0:
		return "Send it again with what stands under errors put right."
	case p.Status == http.StatusNotFound:
		return "Look for it in the list that it would be in; another tenant's is not shown."
	case p.Status == http.StatusServiceUnavailable:
		return "Send it again a little later."
	}
	return "Put that right and send it again; /openapi.json describes the request."
}

// sorted finds what an error is answered with.
func sorted(err error) (*Problem, bool) {
	var refusal *mediator.Refusal
	var conflict *documents.VersionConflict
	var schema *outbox.Refusal
	switch {
	case errors.As(err, &refusal):
		p := &Problem{Status: statuses[refusal.Kind], Code: refusal.Code, Detail: refusal.Sentence, Hint: refusal.Hint}
		for _, at := range refusal.At {
			p.Errors = append(p.Errors, Place(at))
		}
		return p, p.Status != 0
	case errors.As(err, &conflict):
		return &Problem{Status: http.StatusConflict, Code: "version-conflict", Detail: conflict.Error(), CurrentVersion: &conflict.Current,
			Hint: "Read the document, decide anew, and send the version that you read.", Errors: []Place{{Path: conflict.Path, Message: "must be the version that the document has"}}}, true
	case errors.As(err, &schema):
		status := http.StatusUnprocessableEntity
		switch schema.Code {
		case "duplicate-id":
			status = http.StatusConflict
		case "payload-too-large":
			status = http.StatusRequestEntityTooLarge
		}
		what, hint, _ := strings.Cut(schema.Sentence, "; ")
		return &Problem{Status: status, Code: schema.Code, Detail: sentence(what), Hint: sentence(hint)}, true
	}
	for _, k := range sentinels {
		if errors.Is(err, k.err) {
			p := k.problem
			if k.told {
				p.Detail = sentence(err.Error())
			}
			return &p, true
		}
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "Posthorn made a mistake; the log names it under this request's id.",
		Hint: "X-Request-Id is the request's id."}, false
}

// sentence makes an error's text one.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:] + "."
}
