// Sqlshop keeps its orders with database/sql alone. Its own transactions stage; a handler inside the database takes effect exactly once.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func open(path string, connections int, more string) (*sql.DB, error) {
	pool, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_busy_timeout=5000"+more)
	if err == nil {
		pool.SetMaxOpenConns(connections)
	}
	return pool, err
}

// pay marks an order as paid and stages the fact, in one transaction: both are committed, or neither.
func pay(ctx context.Context, shop *sql.DB, order int64, fail error) error {
	tx, err := shop.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders(id, paid) VALUES (?, 1)`, order); err != nil {
		return err
	}
	_, err = outbox.Stage(ctx, tx, outbox.Message{Type: "order-paid", OrderingKey: fmt.Sprint("orders/", order), Payload: fmt.Appendf(nil, `{"order":%d}`, order)})
	if err = errors.Join(err, fail); err != nil {
		return err
	}
	return tx.Commit()
}

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "sqlshop")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "shop.db")
	shop, err := open(path, 4, "&_txlock=immediate")
	if err != nil {
		return err
	}
	defer shop.Close()
	if err := outbox.Install(ctx, shop); err != nil {
		return err
	}
	if _, err := shop.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER NOT NULL) STRICT; CREATE TABLE receipts (message TEXT PRIMARY KEY) STRICT`); err != nil {
		return err
	}
	write, err := open(path, 1, "&_txlock=immediate")
	if err != nil {
		return err
	}
	defer write.Close()
	read, err := open(path, 2, "&_query_only=1")
	if err != nil {
		return err
	}
	defer read.Close()
	writer, err := outbox.NewWriter(bun.NewDB(write, sqlitedialect.New()), outbox.WriterConfig{})
	if err != nil {
		return err
	}
	defer writer.Close(ctx)
	err = writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		return outbox.DeclareTypes(ctx, tx, []outbox.TypeVersion{{Type: "order-paid", SchemaVersion: 1}})
	})
	if err != nil {
		return err
	}
	settled := make(chan outbox.Change, 10)
	dispatcher, err := outbox.NewDispatcher(outbox.Config{Writer: writer, Read: bun.NewDB(read, sqlitedialect.New()), Observe: func(changes []outbox.Change) {
		for _, c := range changes {
			if c.State == outbox.StateDispatched {
				settled <- c
			}
		}
	}})
	if err != nil {
		return err
	}
	err = dispatcher.Register(ctx, outbox.Handler{Name: "receipts", Routes: []outbox.Route{{Pattern: "order-paid"}},
		InTx: func(ctx context.Context, tx *outbox.Tx, d outbox.Delivery) error {
			_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO receipts(message) VALUES (?)`, string(d.Message.ID))
			return err
		}})
	if err != nil {
		return err
	}
	if err := dispatcher.Start(ctx); err != nil {
		return err
	}
	defer func() {
		drain, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_ = dispatcher.Stop(drain)
	}()

	if err := pay(ctx, shop, 1, errors.New("the card was declined")); err == nil {
		return errors.New("a failed payment was committed")
	}
	if err := pay(ctx, shop, 2, nil); err != nil {
		return err
	}
	dispatcher.Wake()
	<-settled
	var orders, receipts int
	if err := shop.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM receipts)`).Scan(&orders, &receipts); err != nil {
		return err
	}
	fmt.Printf("%d order, %d receipt\n", orders, receipts)
	return nil
}
