package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

const (
	benchRow     = "INSERT INTO ledger(id, amount) VALUES (?, ?)"
	benchMessage = "INSERT INTO posted(id, payload) VALUES (?, ?)"
)

// metaTable is where commits are counted.
const metaTable = `CREATE TABLE posthorn_meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID`

var benchPayload = []byte(`{"order":"1001","lines":[{"sku":"A-1","count":2},{"sku":"B-7","count":1}],"total":"42.50"}`)

// BenchmarkWriter compares commands through the writer with the same two inserts in a transaction of their own each, on prepared
// statements: raw keeps BEGIN and COMMIT prepared as well and does nothing else, tx is what database/sql offers. numbered counts
// its commits.
func BenchmarkWriter(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("raw/%d", callers), func(b *testing.B) {
			conn, err := openWriterDB(b).Conn(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			prepare := func(query string) *sql.Stmt {
				s, err := conn.Conn.PrepareContext(b.Context(), query)
				if err != nil {
					b.Fatal(err)
				}
				return s
			}
			begin, commit, row, message := prepare("BEGIN IMMEDIATE"), prepare("COMMIT"), prepare(benchRow), prepare(benchMessage)
			var mu sync.Mutex
			benchCallers(b, callers, func(ctx context.Context, id int64) error {
				mu.Lock()
				defer mu.Unlock()
				if _, err := begin.ExecContext(ctx); err != nil {
					return err
				}
				if _, err := row.ExecContext(ctx, id, id); err != nil {
					return err
				}
				if _, err := message.ExecContext(ctx, id, benchPayload); err != nil {
					return err
				}
				_, err := commit.ExecContext(ctx)
				return err
			})
			conn.Close()
		})
		b.Run(fmt.Sprintf("tx/%d", callers), func(b *testing.B) {
			db := openWriterDB(b)
			row, err := db.DB.PrepareContext(b.Context(), benchRow)
			if err != nil {
				b.Fatal(err)
			}
			message, err := db.DB.PrepareContext(b.Context(), benchMessage)
			if err != nil {
				b.Fatal(err)
			}
			benchCallers(b, callers, func(ctx context.Context, id int64) error {
				tx, err := db.DB.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer tx.Rollback()
				if _, err := tx.StmtContext(ctx, row).ExecContext(ctx, id, id); err != nil {
					return err
				}
				if _, err := tx.StmtContext(ctx, message).ExecContext(ctx, id, benchPayload); err != nil {
					return err
				}
				return tx.Commit()
			})
		})
		for name, mark := range map[string]func(int64){"writer": nil, "numbered": func(int64) {}} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				db := openWriterDB(b)
				if _, err := db.ExecContext(b.Context(), metaTable); err != nil {
					b.Fatal(err)
				}
				w, err := outbox.NewWriter(db, outbox.WriterConfig{Mark: mark})
				if err != nil {
					b.Fatal(err)
				}
				defer w.Close(context.Background())
				benchCallers(b, callers, func(ctx context.Context, id int64) error {
					return w.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
						row, err := tx.Stmt(ctx, benchRow)
						if err != nil {
							return err
						}
						message, err := tx.Stmt(ctx, benchMessage)
						if err != nil {
							return err
						}
						if _, err := row.ExecContext(ctx, id, id); err != nil {
							return err
						}
						_, err = message.ExecContext(ctx, id, benchPayload)
						return err
					})
				})
			})
		}
	}
}

// benchCallers shares b.N commands between callers, and reports commands a second and the 50th and 99th percentile of their times.
func benchCallers(b *testing.B, callers int, command func(ctx context.Context, id int64) error) {
	b.Helper()
	b.ReportAllocs()
	ctx := context.Background()
	var id atomic.Int64
	took := make([][]time.Duration, callers)
	b.ResetTimer()
	started := time.Now()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for {
				n := id.Add(1)
				if n > int64(b.N) {
					return
				}
				from := time.Now()
				if err := command(ctx, n); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(from))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	elapsed := time.Since(started)
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "commands/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}
