package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
)

// exec changes rows as no command does: a restored backup, or somebody with the file open.
func (s *streaming) exec(query string, args ...any) {
	s.t.Helper()
	err := s.store.Writer.Do(s.t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		_, err := tx.Tx.Tx.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// refusal is what an answer that refuses says, without what names the request.
func (s *streaming) refusal(path, token string) string {
	s.t.Helper()
	answer := s.do(http.MethodGet, path, "", "Authorization", "Bearer "+token)
	text, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, text)
}

// TestUnknownAndForbiddenTopicsAreRefusedAlike: a topic that does not exist, one of a module that is off, and one of another tenant's message each get an
// answer that tells nothing of what exists (P44). A message of another tenant's is heard of by nobody but its own.
func TestUnknownAndForbiddenTopicsAreRefusedAlike(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, "")
	_, viewer := s.token(access.NewToken{Role: access.Viewer})
	unknown := s.refusal("/v1/events?topic=weather", viewer)
	if !strings.HasPrefix(unknown, "403 ") {
		t.Fatalf("an unknown topic: %s", unknown)
	}
	for _, topic := range []string{"lending/desk", "messages", "destinations/shop", "messages/a/b", "backlog/other", "Backlog", "tenants/other/backlog", "messages/m-1&topic=lending/desk"} {
		if got := s.refusal("/v1/events?topic="+topic, viewer); got != unknown {
			t.Errorf("%s is refused by %s, an unknown one by %s", topic, got, unknown)
		}
	}
	s.connections(0)
}

// TestStreamsFollowWhoTheirCredentialStandsFor: when a role or a tenant is another in the store, the stream ends at the next check and what waits is not
// delivered; coming back, the caller is authorized as what it is by now (P45).
func TestStreamsFollowWhoTheirCredentialStandsFor(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, `  live-revalidation: {value: 1s, observation: "a test cannot wait for a minute"}
`)
	_, healthyText := s.token(access.NewToken{Role: access.Operator})
	narrowed, narrowedText := s.token(access.NewToken{Role: access.Operator})
	moved, movedText := s.token(access.NewToken{Role: access.Operator})
	removed, removedText := s.token(access.NewToken{Role: access.Operator})
	healthy, narrow, move := s.listenTo(healthyText, "topic=messages/1"), s.listenTo(narrowedText, "topic=messages/1"), s.listenTo(movedText, "topic=messages/1")
	remove := s.listenTo(removedText, "topic=messages/1")
	s.exec(`UPDATE posthorn_tokens SET role = 'viewer' WHERE id = ?`, narrowed.ID)
	s.exec(`UPDATE posthorn_tokens SET tenant = 'other' WHERE id = ?`, moved.ID)
	s.exec(`UPDATE posthorn_tokens SET revoked_at = 1 WHERE id = ?`, removed.ID)
	eventually(t, "the end of the stream whose token is revoked", remove.over)
	if got := s.refusal("/v1/events?topic=messages/1", removedText); remove.said != `{"reason":"expired"}` || !strings.HasPrefix(got, "401 ") {
		t.Errorf("revoked in the store: the stream ended with %q, another is answered %s", remove.said, got)
	}
	eventually(t, "the end of the stream whose role is another", narrow.over)
	eventually(t, "the end of the stream whose tenant is another", move.over)
	for _, l := range []*listener{narrow, move} {
		if l.said != `{"reason":"forbidden"}` {
			t.Errorf("the stream ended with %q", l.said)
		}
	}
	s.tell("1")
	eventually(t, "the one that nothing happened to hears", func() bool { return healthy.version("messages/1") == 1 })
	if narrow.version("messages/1") != 0 || move.version("messages/1") != 0 {
		t.Error("something was delivered after access was gone")
	}
	if closed := s.hub.Stats().Closed["forbidden"]; closed != 2 {
		t.Errorf("closed by reason: %v", s.hub.Stats().Closed)
	}
	again, theirs := s.listenTo(narrowedText, "topic=messages/1"), s.listenTo(movedText, "topic=messages/1")
	s.tell("1")
	eventually(t, "a viewer hears of messages, too", func() bool { return again.version("messages/1") == 2 })
	if theirs.version("messages/1") != 0 {
		t.Error("who belongs to another tenant by now hears of this one")
	}
	_, _, _ = healthy.body.Close(), again.body.Close(), theirs.body.Close()
	s.connections(0)
}
