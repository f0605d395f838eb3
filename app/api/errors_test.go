package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
		if p.Status != c.status || p.Code != c.code || (p.retryAfter != "") != c.retry || p.Detail == "" || p.Hint == "" {
			t.Errorf("%v becomes %+v", c.err, p)
		}
	}
}

// TestAnAnswerThatCannotBeEncoded: it is a problem, and not an empty success.
func TestAnAnswerThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	answered := httptest.NewRecorder()
	x := &exchange{Request: httptest.NewRequest(http.MethodGet, "/", nil), w: answered, api: &server{Deps: Deps{Logger: slog.New(slog.DiscardHandler)}}}
	x.write(reply{http.StatusOK, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	if answered.Code != http.StatusInternalServerError || !strings.Contains(answered.Body.String(), `"internal"`) {
		t.Errorf("answered %d %s", answered.Code, answered.Body)
	}
}
