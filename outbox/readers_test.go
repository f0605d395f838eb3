package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// threeVersions reads version 3 of thing-done, and lifts the two before it.
func threeVersions() *Readers {
	r := NewReaders()
	r.Read(IntegrationEvent, "thing-done", 3)
	for from := 1; from < 3; from++ {
		r.Upcast("thing-done", from, func(m Message) ([]byte, error) {
			if string(m.Payload) == `"bad"` {
				return nil, errors.New("it has no n")
			}
			return fmt.Appendf(nil, `%s lifted from %d`, m.Payload, from), nil
		})
	}
	return r
}

func TestReadersSayWhatTheyCanRead(t *testing.T) {
	t.Parallel()
	r := threeVersions()
	r.Read(JourneyStep, "next-step", 2) // version 1 is not lifted
	for version, want := range map[int]bool{0: false, 1: true, 3: true, 4: false} {
		if got := r.CanRead(TypeVersion{Type: "thing-done", SchemaVersion: version}); got != want {
			t.Errorf("version %d: %v", version, got)
		}
	}
	if r.CanRead(TypeVersion{Type: "other", SchemaVersion: 1}) || r.CanRead(TypeVersion{Kind: JourneyStep, Type: "next-step", SchemaVersion: 1}) {
		t.Error("reads what nobody declared")
	}
	got := fmt.Sprint(r.Declare([]TypeVersion{{Type: "thing-done", SchemaVersion: 4}, {Type: "thing-done", SchemaVersion: 3}, {Type: "other", SchemaVersion: 7}}))
	want := "[{integration-event other 7} {integration-event thing-done 1} {integration-event thing-done 2} {integration-event thing-done 3} {journey-step next-step 2}]"
	if got != want {
		t.Errorf("declares %s, want %s", got, want)
	}
}

// TestEachVersionIsReadAndWhatCannotBeReadWaits delivers the versions of three programs, and then starts the one that can read the last.
func TestEachVersionIsReadAndWhatCannotBeReadWaits(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.do(t, func(ctx context.Context, tx *Tx) error {
		return DeclareTypes(ctx, tx, []TypeVersion{{Type: "thing-done", SchemaVersion: 1}, {Type: "thing-done", SchemaVersion: 2}, {Type: "thing-done", SchemaVersion: 3}, {Type: "thing-done", SchemaVersion: 4}})
	})
	r := &recorder{}
	h := handler("stats", "thing-*", r)
	h.Readers = threeVersions()
	d := b.dispatcher(t, Config{}, h)
	var staged []Message
	for version := 1; version <= 4; version++ {
		staged = append(staged, b.stage(t, Message{Type: "thing-done", SchemaVersion: version, Payload: fmt.Appendf(nil, `%d`, version)})...)
	}
	b.stage(t, Message{Type: "thing-done", Payload: []byte(`"bad"`)})
	eventually(t, "all that can be read is delivered, and the rest set aside", func() bool {
		done := map[string]int{}
		for _, row := range b.rows(t) {
			done[row.State+" "+row.Class.String]++
		}
		return done["dispatched "] == 3 && done["pending unreadable"] == 1 && done["dead-letter rejected"] == 1
	})
	got := map[MessageID]string{}
	for _, dl := range r.received {
		got[dl.Message.ID] = fmt.Sprint(dl.Message.SchemaVersion, " ", string(dl.Message.Payload))
	}
	for i, want := range []string{"3 1 lifted from 1 lifted from 2", "3 2 lifted from 2", "3 3", ""} {
		if got[staged[i].ID] != want {
			t.Errorf("version %d arrived as %q, want %q", i+1, got[staged[i].ID], want)
		}
	}
	for _, row := range b.rows(t) {
		if row.Class.String == "unreadable" && (row.Attempt != 0 || row.Charged != 0 || row.LastError.String == "" || row.Fence == 0) {
			t.Errorf("set aside as %+v", row)
		}
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Readers = threeVersions()
	h.Readers.Read(IntegrationEvent, "thing-done", 4)
	b.dispatcher(t, Config{}, h)
	eventually(t, "the newer program reads it at once", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.received) == 4 && r.received[3].Message.ID == staged[3].ID
	})
}
