package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// limitPages lets the database grow by so many pages and no more, as a disk does that is nearly full. It is the writer's connection that is
// limited.
func (b *bed) limitPages(t testing.TB, more int64) {
	t.Helper()
	err := b.writer.First(context.Background(), func(ctx context.Context, tx *Tx) error {
		var pages, limit int64
		if err := tx.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages+more)).Scan(&limit)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func large(i int) Message {
	m := event(i)
	m.Payload = []byte(`"` + strings.Repeat("x", 300_000) + `"`)
	return m
}

func (b *bed) stageOne(m Message) error {
	return b.writer.Do(context.Background(), func(ctx context.Context, tx *Tx) error {
		_, err := Stage(ctx, tx, m)
		return err
	})
}

// What was accepted is delivered and settled in the room that a reserve leaves, while nothing new fits; and new things fit again without
// anybody's help.
func TestFullDiskStopsIntakeAndNotDelivery(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	r := recorder{answer: func(d Delivery) error {
		if d.Attempt == 1 && d.Message.Seq%2 == 0 {
			return errors.New("not yet") // leaves evidence, which takes room
		}
		return nil
	}}
	d := b.dispatcher(t, Config{Poll: time.Hour, Retry: RetryPolicy{First: time.Millisecond}}, handler("h", "*", &r))
	if err := d.Hold(t.Context(), "h", "until the disk is full"); err != nil {
		t.Fatal(err)
	}
	const accepted = 100
	b.stage(t, events(0, accepted)...)
	b.limitPages(t, 40)
	if err := b.stageOne(large(accepted)); !errors.Is(err, ErrStoreFull) {
		t.Fatalf("a message that does not fit was answered %v", err)
	}
	if err := d.Resume(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all dispatched on a full disk", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == accepted
	})
	if err := d.Down(); err != nil {
		t.Errorf("delivery was stopped: %v", err)
	}
	if err := b.stageOne(large(accepted)); !errors.Is(err, ErrStoreFull) {
		t.Errorf("a message that does not fit was answered %v", err)
	}
	b.limitPages(t, 1<<20)
	if err := b.stageOne(large(accepted)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	eventually(t, "the new one dispatched", func() bool { return b.state(t, accepted) == "dispatched" })
	b.tallied(t, d)
}

// A database without a page to spare settles nothing that needs one: the outcome waits, no message is touched, and it goes on by itself.
func TestNoRoomAtAllHealsAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	first, full := make(chan struct{}), make(chan struct{})
	r := recorder{answer: func(d Delivery) error {
		if d.Attempt == 1 {
			close(first)
			<-full
			return &Failure{Class: Failed, Err: errors.New(strings.Repeat("evidence ", 110)), Excerpt: strings.Repeat("e", 1024)}
		}
		return nil
	}}
	d := b.dispatcher(t, Config{Poll: time.Hour, Retry: RetryPolicy{First: time.Millisecond}}, handler("h", "*", &r))
	b.stage(t, event(1))
	<-first
	// Fill what is free in the pages that there are.
	b.limitPages(t, 0)
	for size := 2000; size > 0; size /= 2 {
		for err := error(nil); err == nil; {
			err = b.writer.Do(context.Background(), func(ctx context.Context, tx *Tx) error {
				_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO outbox_attempts(delivery, attempt, fence, charged, class, error, started_at, duration) VALUES (1, 9, 9, 0, 'failed', ?, 0, 0)`, strings.Repeat("f", size))
				return err
			})
			if err != nil && !errors.Is(err, ErrStoreFull) {
				t.Fatal(err)
			}
		}
	}
	close(full)
	eventually(t, "the full store is noticed", func() bool { return errors.Is(d.Down(), ErrStoreFull) })
	if row := b.rows(t)[0]; row.State != "processing" || row.LastError.Valid {
		t.Errorf("while the store is full: %+v", row)
	}
	b.limitPages(t, 1<<20)
	eventually(t, "dispatched", func() bool { return b.state(t, 0) == "dispatched" && d.Down() == nil })
	if row := b.rows(t)[0]; row.Attempt != 2 || row.Charged != 2 {
		t.Errorf("afterwards: %+v", row)
	}
	b.tallied(t, d)
}
