// Bunshop keeps its orders with bun, and delivers what it commits: it stages in its own bun transaction, and wakes the dispatcher after the commit.
package main

import (
	"context"
	"database/sql"
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

// Order is a table of the shop's own.
type Order struct {
	ID   int64 `bun:",pk,autoincrement"`
	Paid bool
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// open opens a pool of so many connections with the settings that durability rests on.
func open(path string, connections int, more string) (*bun.DB, error) {
	pool, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_busy_timeout=5000"+more)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	return bun.NewDB(pool, sqlitedialect.New()), nil
}

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "bunshop")
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
	if err := outbox.Install(ctx, shop.DB); err != nil {
		return err
	}
	if _, err := shop.NewCreateTable().Model((*Order)(nil)).Exec(ctx); err != nil {
		return err
	}

	// The outbox has a connection of its own to write by, and some to read.
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
	writer, err := outbox.NewWriter(write, outbox.WriterConfig{})
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
	dispatcher, err := outbox.NewDispatcher(outbox.Config{Writer: writer, Read: read})
	if err != nil {
		return err
	}
	delivered := make(chan outbox.Delivery)
	err = dispatcher.Register(ctx, outbox.Handler{Name: "accounting", Routes: []outbox.Route{{Pattern: "order-*"}}, RepeatKey: "the message's id",
		Outside: func(_ context.Context, d outbox.Delivery) error {
			delivered <- d
			return nil
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

	err = shop.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		order := Order{Paid: true}
		if _, err := tx.NewInsert().Model(&order).Exec(ctx); err != nil {
			return err
		}
		_, err := outbox.Stage(ctx, tx, outbox.Message{Type: "order-paid", Payload: fmt.Appendf(nil, `{"order":%d}`, order.ID)})
		return err
	})
	if err != nil {
		return err
	}
	dispatcher.Wake()
	d := <-delivered
	fmt.Printf("%s got %s %s\n", d.Handler, d.Message.Type, d.Message.Payload)
	return nil
}
