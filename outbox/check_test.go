package outbox

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// TestWhatSQLStagedIsCheckedAtItsFirstClaim: a refused message is a dead letter for every handler, and is asked about again after a replay.
func TestWhatSQLStagedIsCheckedAtItsFirstClaim(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var first, second recorder
	allowed := make(chan struct{})
	check := func(m Message) error {
		select {
		case <-allowed:
			return nil
		default:
		}
		if bytes.Contains(m.Payload, []byte("bad")) {
			return errors.New("/thing must be good")
		}
		return nil
	}
	d := b.dispatcher(t, Config{Check: check}, handler("first", "thing-*", &first), handler("second", "thing-*", &second))
	b.do(t, func(ctx context.Context, tx *Tx) error {
		for _, payload := range []string{`{"thing":"bad"}`, `{"thing":"good"}`} {
			if _, err := tx.ExecContext(ctx, `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', ?)`, payload); err != nil {
				return err
			}
		}
		// What this program stages it has judged itself.
		_, err := Stage(ctx, tx, Message{ID: "own", Type: "thing-done", Payload: []byte(`{"own":"bad"}`)})
		return err
	})
	counts := func() (dead, done int) {
		for _, r := range b.rows(t) {
			switch r.State {
			case "dead-letter":
				dead++
				if r.Class.String != string(Rejected) || !strings.Contains(r.LastError.String, "/thing must be good") || r.Attempt != 1 {
					t.Errorf("dead letter %+v", r)
				}
			case "dispatched":
				done++
			}
		}
		return dead, done
	}
	eventually(t, "both handlers finished", func() bool { dead, done := counts(); return dead == 2 && done == 4 })
	if first.count() != 2 || second.count() != 2 {
		t.Errorf("the handlers saw %d and %d messages, want 2 each", first.count(), second.count())
	}
	dead := b.rows(t)[0]
	close(allowed)
	b.do(t, func(ctx context.Context, tx *Tx) error {
		_, err := d.Replay(ctx, tx, Operator{Tenant: MainTenant, Actor: "test", Reason: "the schema was mended"}, DeliveryID(dead.ID))
		return err
	})
	eventually(t, "the replayed one is delivered", func() bool { dead, done := counts(); return dead == 1 && done == 5 })
}
