package api

import (
	"errors"
	"fmt"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
		retry  bool
	}{
		{outbox.ErrQueueFull, 503, "queue-full", true},
		{fmt.Errorf("stage: %w", outbox.ErrDeadline), 503, "deadline", true},
		{outbox.ErrStoreBusy, 503, "store-busy", true},
		{outbox.ErrStoreFull, 507, "store-full", false},
		{outbox.ErrStoreIO, 503, "store-unavailable", true},
		{outbox.ErrInDoubt, 500, "in-doubt", false},
		{fmt.Errorf("verify: %w", store.ErrReplaced), 503, "store-replaced", true},
		{outbox.ErrClosed, 503, "stopping", true},
		{fmt.Errorf("stage message: %w", outbox.ErrDuplicateID), 409, "duplicate-id", false},
		{outbox.ErrUndeclaredType, 422, "undeclared-type", false},
		{&outbox.Refusal{Code: "payload-too-large", Sentence: "x"}, 413, "payload-too-large", false},
		{access.ErrUnauthenticated, 401, "unauthenticated", false},
		{access.Principal{Role: access.Viewer}.Require(access.Admin), 403, "forbidden", false},
		{&mediator.Refusal{Kind: mediator.Missing, Code: "no-thing", Sentence: "x"}, 404, "no-thing", false},
		{errors.New("surprise"), 500, "internal", false},
	} {
		p, _ := problemOf(c.err)
		if p.Status != c.status || p.Code != c.code || (p.retryAfter != "") != c.retry || p.Detail == "" {
			t.Errorf("%v becomes %+v", c.err, p)
		}
	}
}
