package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// A command is acknowledged when its group is on the disk; one that returns an error changes nothing.
func ExampleWriter() {
	folder, err := os.MkdirTemp("", "posthorn")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "app.db")+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	if _, err := pool.Exec("CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0)) STRICT"); err != nil {
		panic(err)
	}

	writer, err := outbox.NewWriter(bun.NewDB(pool, sqlitedialect.New()), outbox.WriterConfig{})
	if err != nil {
		panic(err)
	}
	defer writer.Close(context.Background())

	ctx := context.Background()
	err = writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		insert, err := tx.Stmt(ctx, "INSERT INTO account(name, balance) VALUES (?, ?)")
		if err != nil {
			return err
		}
		tx.AfterCommit(func() { fmt.Println("on the disk") })
		_, err = insert.ExecContext(ctx, "ada", 10)
		return err
	})
	fmt.Println(err)

	err = writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = 0 WHERE name = ?", "ada"); err != nil {
			return err
		}
		return errors.New("ada keeps her money")
	})
	fmt.Println(err)
	// Output:
	// on the disk
	// <nil>
	// ada keeps her money
}
