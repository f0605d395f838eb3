package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// shop is an application with its database, for the examples.
type shop struct {
	folder string
	db     *sql.DB // the application's own
	write  *bun.DB
	read   *bun.DB
	writer *outbox.Writer
}

// openShop opens a database with the outbox in it. One event is declared.
func openShop(ctx context.Context) *shop {
	folder, err := os.MkdirTemp("", "posthorn")
	must(err)
	open := func(connections int, more string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "shop.db")+"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000"+more)
		must(err)
		db.SetMaxOpenConns(connections)
		return db
	}
	s := &shop{folder: folder, db: open(2, "&_txlock=immediate")}
	must(outbox.Install(ctx, s.db))
	s.write, s.read = bun.NewDB(open(1, "&_txlock=immediate"), sqlitedialect.New()), bun.NewDB(open(2, "&_query_only=1"), sqlitedialect.New())
	s.writer, err = outbox.NewWriter(s.write, outbox.WriterConfig{})
	must(err)
	must(s.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		return outbox.DeclareTypes(ctx, tx, []outbox.TypeVersion{{Type: "order-paid", SchemaVersion: 1}})
	}))
	return s
}

func (s *shop) close() {
	_ = s.writer.Close(context.Background())
	_, _, _ = s.write.Close(), s.read.Close(), s.db.Close()
	_ = os.RemoveAll(s.folder)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A message is staged in a transaction of one's own, and vanishes with it.
func ExampleStage() {
	ctx := context.Background()
	s := openShop(ctx)
	defer s.close()

	tx, err := s.db.BeginTx(ctx, nil)
	must(err)
	staged, err := outbox.Stage(ctx, tx, outbox.Message{ID: "order-1001-paid", Type: "order-paid", Payload: []byte(`{"order":1001}`)})
	must(err)
	fmt.Println(staged.Type, staged.SchemaVersion, staged.ContentType)
	must(tx.Commit())

	// Its id stands for one message for ever.
	tx, err = s.db.BeginTx(ctx, nil)
	must(err)
	_, err = outbox.Stage(ctx, tx, outbox.Message{ID: "order-1001-paid", Type: "order-paid", Payload: []byte(`{}`)})
	fmt.Println(errors.Is(err, outbox.ErrDuplicateID))
	must(tx.Rollback())
	// Output:
	// order-paid 1 application/json
	// true
}

// A handler outside the database is called at least once. What it returns decides what follows.
func ExampleDispatcher() {
	ctx := context.Background()
	s := openShop(ctx)
	defer s.close()
	dispatcher, err := outbox.NewDispatcher(outbox.Config{Writer: s.writer, Read: s.read})
	must(err)
	done := make(chan struct{})
	must(dispatcher.Register(ctx, outbox.Handler{Name: "accounting", Routes: []outbox.Route{{Pattern: "order-*"}}, RepeatKey: "the message's id",
		Outside: func(_ context.Context, d outbox.Delivery) error {
			if d.Attempt == 1 {
				return outbox.Snooze(time.Millisecond) // too early; not charged
			}
			fmt.Printf("attempt %d of %s: %s\n", d.Attempt, d.Message.Type, d.Message.Payload)
			close(done)
			return nil
		}}))
	must(dispatcher.Start(ctx))
	must(s.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		_, err := outbox.Stage(ctx, tx, outbox.Message{Type: "order-paid", Payload: []byte(`{"order":1001}`)})
		return err
	}))
	<-done
	must(dispatcher.Stop(ctx))
	// Output: attempt 2 of order-paid: {"order":1001}
}

// The writer's own commits wake the dispatcher; after a commit of one's own, Wake does.
func ExampleDispatcher_Wake() {
	ctx := context.Background()
	s := openShop(ctx)
	defer s.close()
	dispatcher, err := outbox.NewDispatcher(outbox.Config{Writer: s.writer, Read: s.read})
	must(err)
	done := make(chan struct{})
	must(dispatcher.Register(ctx, outbox.Handler{Name: "receipts", Routes: []outbox.Route{{Pattern: "order-paid"}},
		InTx: func(_ context.Context, tx *outbox.Tx, d outbox.Delivery) error { // exactly once: it is part of the settling
			tx.AfterCommit(func() { close(done) })
			return nil
		}}))
	must(dispatcher.Start(ctx))

	tx, err := s.db.BeginTx(ctx, nil)
	must(err)
	_, err = outbox.Stage(ctx, tx, outbox.Message{Type: "order-paid", Payload: []byte(`{"order":1001}`)})
	must(err)
	must(tx.Commit())
	dispatcher.Wake()
	<-done
	fmt.Println("handled")
	must(dispatcher.Stop(ctx))
	// Output: handled
}

// An error says whether a retry can help.
func ExamplePermanent() {
	for _, err := range []error{
		errors.New("it does not answer"),
		outbox.Permanent(errors.New("it will never take this")),
		outbox.RetryAfter(time.Minute, errors.New("it is too busy")),
	} {
		failure := (*outbox.Failure)(nil)
		if errors.As(err, &failure) {
			fmt.Println(failure.Class, failure.RetryAfter)
			continue
		}
		fmt.Println(outbox.Failed)
	}
	// Output:
	// failed
	// rejected 0s
	// throttled 1m0s
}
