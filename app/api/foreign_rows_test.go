package api_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
)

// foreignRows are a row of each table of the outbox that is read back, as a program that writes SQL may make them.
const foreignRows = `
INSERT INTO outbox_lanes(handler, held_at, reason) VALUES ('shop', 1, 'paused by hand');
INSERT INTO outbox_messages(id, type, payload) VALUES ('m-1', 'order-placed', '{"order":1}');
INSERT INTO outbox_deliveries(id, seq, handler, tenant, next_attempt_at, blocked, created_at) SELECT 101, seq, 'shop', 'main', 1, 0, 1 FROM outbox_messages WHERE id = 'm-1';
INSERT INTO outbox_deliveries(id, seq, handler, tenant, state, lease_owner, lease_expires_at, fence, created_at) SELECT 102, seq, 'a', 'main', 'processing', 'o', 1, 1, 1 FROM outbox_messages WHERE id = 'm-1';
INSERT INTO outbox_deliveries(id, seq, handler, tenant, state, suppressed, completed_at, fence, created_at) SELECT 103, seq, 'b', 'main', 'dispatched', 0, 1, 1, 1 FROM outbox_messages WHERE id = 'm-1';
INSERT INTO outbox_deliveries(id, seq, handler, tenant, state, failure_class, completed_at, fence, created_at) SELECT 104, seq, 'c', 'main', 'dead-letter', 'failed', 1, 1, 1 FROM outbox_messages WHERE id = 'm-1';
INSERT INTO outbox_attempts(delivery, attempt, fence, charged, class, error, started_at, duration) VALUES (104, 1, 1, 1, 'failed', 'no', 1, 1);
INSERT INTO outbox_replays(delivery, message, tenant, handler, actor, reason, replayed_at, failure) VALUES (104, 'm-1', 'main', 'c', 'os:x', 'y', 1, 'failed: no');
INSERT INTO outbox_inbox(handler, tenant, message, handled_at, purged_at) VALUES ('c', 'main', 'm-0', 1, 1);
INSERT INTO outbox_backfills(handler, actor, occurred_from, occurred_to, next_seq, last_seq, started_at, finished_at) VALUES ('shop', 'os:x', 1, 2, 1, 1, 1, 1);
`

// TestNoRowOfAForeignProgramBreaksAList gives each column of the outbox each number at the edges and texts that are none: what the contract lets in, the
// API can show.
func TestNoRowOfAForeignProgramBreaksAList(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	if a := b.post(t, "/v1/destinations", `{"name":"shop","kind":"pull","types":["none-*"]}`); a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	exec := func(query string, args ...any) error {
		return b.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
			_, err := tx.Tx.Tx.ExecContext(ctx, query, args...)
			return err
		})
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(foreignRows), "\n") {
		if err := exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	lists := func(what string) {
		t.Helper()
		for _, path := range []string{"/v1/audit", "/v1/messages", "/v1/messages?state=dead-letter", "/v1/messages?state=pending", "/v1/messages/m-1", "/v1/backlog", "/v1/destinations",
			"/v1/destinations/shop", "/v1/destinations/shop/backfill"} {
			if a := b.exchange(t, b.tokens[access.Admin], "GET", path, ""); a.status != http.StatusOK {
				t.Errorf("%s: GET %s is answered %d %s", what, path, a.status, a.body)
			}
		}
	}
	lists("as it was")
	let := 0
	values := []any{int64(math.MinInt64), int64(-1), int64(0), int64(253402300799999999), int64(253402300800000000), int64(math.MaxInt64), "", "\xff\xfe", "a\x00b"}
	for _, table := range []string{"outbox_lanes", "outbox_deliveries", "outbox_attempts", "outbox_replays", "outbox_inbox", "outbox_backfills", "outbox_messages"} {
		rows, err := b.store.Read.DB.Query(`SELECT name, type FROM pragma_table_info(?) WHERE pk = 0`, table)
		if err != nil {
			t.Fatal(err)
		}
		columns := map[string]string{}
		for rows.Next() {
			var name, kind string
			if err := rows.Scan(&name, &kind); err != nil {
				t.Fatal(err)
			}
			columns[name] = kind
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		for column, kind := range columns {
			for _, value := range values {
				if _, text := value.(string); text != (kind == "TEXT") {
					continue
				}
				if exec(fmt.Sprintf(`CREATE TABLE kept AS SELECT rowid AS r, %[2]s AS v FROM %[1]s`, table, column)) != nil { // without rowids
					if err := exec(fmt.Sprintf(`CREATE TABLE kept AS SELECT handler AS r, %[2]s AS v FROM %[1]s`, table, column)); err != nil {
						t.Fatal(err)
					}
				}
				if exec(fmt.Sprintf(`UPDATE %s SET %s = ?`, table, column), value) == nil {
					let++
					lists(fmt.Sprintf("%s.%s = %v", table, column, value))
				}
				back := fmt.Sprintf(`UPDATE %[1]s SET %[2]s = (SELECT v FROM kept WHERE r = %[1]s.rowid)`, table, column)
				if exec(back) != nil {
					_ = exec(fmt.Sprintf(`UPDATE %[1]s SET %[2]s = (SELECT v FROM kept WHERE r = %[1]s.handler)`, table, column))
				}
				if err := exec(`DROP TABLE kept`); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i, headers := range []string{`{"a":1}`, `{"a":null}`, `{"a":{"b":[1]}}`, `{"a":"b","a":"c"}`} {
		id := fmt.Sprintf("h-%d", i)
		if exec(`INSERT INTO outbox_messages(id, type, payload, headers) VALUES (?, 'order-placed', '{"order":1}', ?)`, id, headers) != nil {
			continue
		}
		let++
		if a := b.exchange(t, b.tokens[access.Admin], "GET", "/v1/messages/"+id, ""); a.status != http.StatusOK {
			t.Errorf("headers %s: %d %s", headers, a.status, a.body)
		}
	}
	if let < 50 {
		t.Errorf("only %d rows were let in", let)
	}
	lists("in the end")
}
