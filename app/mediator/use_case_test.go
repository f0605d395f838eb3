package mediator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// TestUseCasesAgreeWithTheirRecords goes through what a start refuses.
func TestUseCasesAgreeWithTheirRecords(t *testing.T) {
	t.Parallel()
	set, err := records.Load(fstest.MapFS{
		"use-cases/rename-a-member.md": {Data: []byte("---\ntitle: Rename\nactor: a clerk\nrequest: command\nchanges: members\nemits: [parcel-sent]\nruns: [next-step]\n" +
			"delivery_target: {within: 1m, share: 99%}\nalerts: [alert-dead-letters]\n---\nRenames.\n")},
		"reactions/count-again.md": {Data: []byte("---\ntitle: Count\non: parcel-sent\ndelivery: excluded\naccepted_loss: nobody minds\nrepeat_with: posthorn count\n---\nCounts.\n")},
		"journeys/move.md": {Data: []byte("---\ntitle: Move\ntrigger: use-cases/rename-a-member\nsteps: [{id: next-step, command: move, when: at once}]\nends: [moved]\n" +
			"delivery_target: {within: 1m, share: 99%}\n---\nMoves.\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	rename := mediator.UseCase{Record: "use-cases/rename-a-member", Emits: []string{"parcel-sent"}, Runs: []string{"next-step"}}
	step := mediator.UseCase{Record: "journeys/move", Step: "next-step"}
	for _, c := range []struct {
		name string
		list []mediator.UseCase
		want string // empty: it starts
	}{
		{"all declared", []mediator.UseCase{rename, step, {Record: "reactions/count-again"}}, ""},
		{"no record", []mediator.UseCase{{Record: "use-cases/unheard-of"}}, "no record declares it"},
		{"twice", []mediator.UseCase{rename, rename}, "registered twice"},
		{"emits more than its record says", []mediator.UseCase{{Record: rename.Record, Emits: []string{"parcel-sent", "parcel-delivered"}, Runs: rename.Runs}}, "its record says"},
		{"an event that nobody declares", []mediator.UseCase{{Record: "journeys/move", Step: "next-step", Emits: []string{"parcel-lost"}}}, "parcel-lost"},
		{"runs less than its record says", []mediator.UseCase{{Record: rename.Record, Emits: rename.Emits}}, "its record says"},
		{"a step that the journey lacks", []mediator.UseCase{{Record: "journeys/move", Step: "other-step"}}, "no such step"},
		{"an excluded reaction that stages", []mediator.UseCase{{Record: "reactions/count-again", Emits: []string{"parcel-sent"}}}, "stages nothing"},
		{"a setting", []mediator.UseCase{{Record: "settings/port"}}, "none of"},
	} {
		err := mediator.Check(set, c.list)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestWhatIsNotDeclaredIsNotStaged sends a command whose handler raises more than its use case says, and one that nobody registered.
func TestWhatIsNotDeclaredIsNotStaged(t *testing.T) {
	t.Parallel()
	db, m := newStore(t)
	caller := access.With(t.Context(), access.Principal{Actor: "token:x", Tenant: "far", Role: access.Operator})
	raise := func(ctx context.Context, work *mediator.UnitOfWork, _ rename) (int, error) {
		work.Raise(outbox.Message{Type: "member-expelled", Payload: []byte(`{}`)})
		_, err := work.Tx.Tx.Tx.ExecContext(ctx, change)
		return 0, err
	}
	if _, err := mediator.Send(caller, m, rename{steps: new([]string)}, raise); !errors.Is(err, mediator.ErrUndeclaredEffect) {
		t.Errorf("undeclared effect: %v", err)
	}
	strict := mediator.New(mediator.Config{Writer: db.Writer, Read: db.Read, UseCases: []mediator.UseCase{}})
	if _, err := mediator.Send(caller, strict, rename{steps: new([]string)}, raise); !errors.Is(err, mediator.ErrUnregistered) {
		t.Errorf("unregistered: %v", err)
	}
	if n := count(t, db, "documents") + count(t, db, "outbox_messages"); n != 0 {
		t.Errorf("%d rows of what was refused", n)
	}
}

// TestAnExcludedReactionRunsAfterTheCommitWithoutARow emits from a command that commits and from one that does not.
func TestAnExcludedReactionRunsAfterTheCommitWithoutARow(t *testing.T) {
	t.Parallel()
	db, m := newStore(t)
	e := mediator.NewEmitter(nil)
	defer e.Close()
	caller := access.With(t.Context(), access.Principal{Actor: "token:x", Tenant: "far", Role: access.Operator})
	ran := make(chan int, 10)
	send := func(n int, fail error) error {
		_, err := mediator.Send(caller, m, rename{steps: new([]string)}, func(ctx context.Context, work *mediator.UnitOfWork, _ rename) (int, error) {
			work.AfterCommit(func() {
				e.Emit("count-again", "far", func(context.Context) error { ran <- count(t, db, "documents"); return nil })
			})
			if _, err := work.Tx.Tx.Tx.ExecContext(ctx, change); err != nil {
				return 0, err
			}
			return n, fail
		})
		return err
	}
	if err := send(1, errors.New("no")); err == nil {
		t.Fatal("it committed")
	}
	if err := send(2, nil); err != nil {
		t.Fatal(err)
	}
	if seen := <-ran; seen != 1 {
		t.Errorf("the reaction saw %d documents, so it did not run after the commit", seen)
	}
	if n := count(t, db, "outbox_messages"); n != 0 || len(ran) != 0 {
		t.Errorf("%d messages, %d more runs", n, len(ran))
	}
}
