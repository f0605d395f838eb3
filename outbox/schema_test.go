package outbox

import (
	"bytes"
	"database/sql"
	"os/exec"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// contract is what a program in any language may rely on: statements in order, each with the code that refuses it, or none.
var contract = []struct{ name, sql, refused string }{
	{"declare", `INSERT INTO outbox_types VALUES ('thing-done', 1), ('thing-done', 2)`, ""},
	{"route", `INSERT INTO outbox_routes(handler, pattern) VALUES ('a', 'thing-*'), ('a', '*'), ('b', 'thing-done'), ('c', 'other-*')`, ""},
	{"the least insert, text", `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', '{"n":1}')`, ""},
	{"the least insert, bytes", `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', x'00ff')`, ""},
	{"empty payload", `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', '')`, ""},
	{"own id", `INSERT INTO outbox_messages(id, type, payload) VALUES ('my-id', 'thing-done', '{}')`, ""},
	{"own id, other tenant", `INSERT INTO outbox_messages(id, tenant, type, payload) VALUES ('my-id', 't2', 'thing-done', '{}')`, ""},
	{"repeated id", `INSERT INTO outbox_messages(id, type, payload) VALUES ('my-id', 'thing-done', '{}')`, "duplicate-id"},
	{"repeated id, OR REPLACE", `INSERT OR REPLACE INTO outbox_messages(id, type, payload) VALUES ('my-id', 'thing-done', '[]')`, "duplicate-id"},
	{"repeated id, OR IGNORE", `INSERT OR IGNORE INTO outbox_messages(id, type, payload) VALUES ('my-id', 'thing-done', '[]')`, "duplicate-id"},
	{"own seq", `INSERT OR REPLACE INTO outbox_messages(seq, type, payload) VALUES (1, 'thing-done', '{}')`, "bad-seq"},
	{"bad id", `INSERT INTO outbox_messages(id, type, payload) VALUES ('a b', 'thing-done', '{}')`, "bad-id"},
	{"empty id", `INSERT INTO outbox_messages(id, type, payload) VALUES ('', 'thing-done', '{}')`, "bad-id"},
	{"null id", `INSERT INTO outbox_messages(id, type, payload) VALUES (NULL, 'thing-done', '{}')`, "bad-id"},
	{"long id", `INSERT INTO outbox_messages(id, type, payload) VALUES (printf('%065d', 1), 'thing-done', '{}')`, "bad-id"},
	{"undeclared type", `INSERT INTO outbox_messages(type, payload) VALUES ('thing-undone', '{}')`, "undeclared-type"},
	{"no version", `INSERT INTO outbox_messages(type, schema_version, payload) VALUES ('thing-done', NULL, '{}')`, "bad-version"},
	{"version 0", `INSERT INTO outbox_messages(type, schema_version, payload) VALUES ('thing-done', 0, '{}')`, "bad-version"},
	{"undeclared version", `INSERT INTO outbox_messages(type, schema_version, payload) VALUES ('thing-done', 3, '{}')`, "undeclared-type"},
	{"undeclared type, OR IGNORE", `INSERT OR IGNORE INTO outbox_messages(type, payload) VALUES ('thing-undone', '{}')`, "undeclared-type"},
	{"null type, OR IGNORE", `INSERT OR IGNORE INTO outbox_messages(type, payload) VALUES (NULL, '{}')`, "bad-type"},
	{"upper-case type", `INSERT INTO outbox_messages(type, payload) VALUES ('Thing', '{}')`, "bad-type"},
	{"null payload", `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', NULL)`, "bad-payload"},
	{"number as payload", `INSERT OR IGNORE INTO outbox_messages(type, payload) VALUES ('thing-done', 1)`, "bad-payload"},
	{"huge payload", `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', zeroblob(16777217))`, "payload-too-large"},
	{"bad kind", `INSERT INTO outbox_messages(kind, type, payload) VALUES ('event', 'thing-done', '{}')`, "bad-kind"},
	{"effect without handler", `INSERT INTO outbox_messages(kind, type, payload) VALUES ('provider-effect', 'send-it', '{}')`, "no-handler"},
	{"effect route", `INSERT INTO outbox_routes(handler, kind, pattern) VALUES ('sender', 'provider-effect', 'send-it')`, ""},
	{"effect", `INSERT INTO outbox_messages(kind, type, payload) VALUES ('provider-effect', 'send-it', '{}')`, ""},
	{"second handler of an effect", `INSERT INTO outbox_routes(handler, kind, pattern) VALUES ('sender2', 'provider-effect', 'send-it')`, "UNIQUE"},
	{"negative time", `INSERT INTO outbox_messages(type, payload, occurred_at) VALUES ('thing-done', '{}', -1)`, "bad-time"},
	{"key and time", `INSERT INTO outbox_messages(type, payload, ordering_key, deliver_at) VALUES ('thing-done', '{}', 'k', 1)`, "ordered-and-scheduled"},
	{"empty key", `INSERT INTO outbox_messages(type, payload, ordering_key) VALUES ('thing-done', '{}', '')`, "bad-ordering-key"},
	{"bad content type", `INSERT INTO outbox_messages(type, payload, content_type) VALUES ('thing-done', '{}', 'json')`, "bad-content-type"},
	{"line break in content type", `INSERT INTO outbox_messages(type, payload, content_type) VALUES ('thing-done', '{}', 'text/x' || char(10) || 'a: b')`, "bad-content-type"},
	{"an id that goes on after NUL", `INSERT INTO outbox_messages(id, type, payload) VALUES ('a' || char(0) || ' b', 'thing-done', '{}')`, "bad-text"},
	{"a tenant that goes on after NUL", `INSERT INTO outbox_messages(tenant, type, payload) VALUES ('t' || char(0) || printf('%0999d', 1), 'thing-done', '{}')`, "bad-text"},
	{"a key that goes on after NUL", `INSERT INTO outbox_messages(type, payload, ordering_key) VALUES ('thing-done', '{}', 'k' || char(0) || printf('%0999d', 1))`, "bad-text"},
	{"a content type that goes on after NUL", `INSERT INTO outbox_messages(type, payload, content_type) VALUES ('thing-done', '{}', 'text/x' || char(0, 13, 10) || 'a: b')`, "bad-text"},
	{"headers that go on after NUL", `INSERT INTO outbox_messages(type, payload, headers) VALUES ('thing-done', '{}', '{}' || char(0) || printf('%09999d', 1))`, "bad-text"},
	{"headers that are no object", `INSERT INTO outbox_messages(type, payload, headers) VALUES ('thing-done', '{}', '[1]')`, "bad-headers"},
	{"change a payload", `UPDATE outbox_messages SET payload = '[]'`, "immutable"},
	{"change an id", `UPDATE OR REPLACE outbox_messages SET id = 'x' WHERE seq = 1`, "immutable"},
	{"fill the hash", `UPDATE outbox_messages SET payload_sha256 = zeroblob(32) WHERE seq = 1`, ""},
	{"fill the hash again", `UPDATE outbox_messages SET payload_sha256 = zeroblob(32) WHERE seq = 1`, "immutable"},
	{"delete a message", `DELETE FROM outbox_messages WHERE seq = 1`, "kept"},
	{"delete a delivery", `DELETE FROM outbox_deliveries WHERE id = 1`, "kept"},
	{"two of a key", `INSERT INTO outbox_messages(type, payload, ordering_key) VALUES ('thing-done', '{}', 'k'), ('thing-done', '{}', 'k')`, ""},
	{"more attempts than can be counted", `UPDATE outbox_deliveries SET attempt = 9223372036854775807 WHERE id = 1`, "numbers_are_bounded"},
	{"a time that nobody can write", `UPDATE outbox_deliveries SET next_attempt_at = 9223372036854775807 WHERE id = 1`, "numbers_are_bounded"},
	{"a lease without an owner", `UPDATE outbox_deliveries SET state = 'processing', next_attempt_at = NULL, blocked = NULL WHERE id = 1`, "state_decides_which_columns_are_null"},
	{"dispatched, and not ended", `UPDATE outbox_deliveries SET state = 'dispatched', next_attempt_at = NULL, blocked = NULL, suppressed = 0, fence = 1 WHERE id = 1`, "state_decides_which_columns_are_null"},
	{"a dead letter without a class", `UPDATE outbox_deliveries SET state = 'dead-letter', next_attempt_at = NULL, blocked = NULL, completed_at = 1, fence = 1 WHERE id = 1`, "state_decides_which_columns_are_null"},
	{"an unknown state", `UPDATE outbox_deliveries SET state = 'queued' WHERE id = 1`, "state_decides_which_columns_are_null"},
	{"a worker that reads version 1", `INSERT INTO outbox_workers VALUES ('integration-event', 'thing-done', 1, 'w')`, ""},
	{"a version that no worker reads", `INSERT INTO outbox_messages(type, schema_version, payload) VALUES ('thing-done', 2, '{}')`, "unreadable"},
	{"a version that it reads", `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', '{}')`, ""},
	{"no route", `DELETE FROM outbox_routes WHERE handler IN ('a', 'b')`, ""},
	{"kept for nobody yet", `INSERT INTO outbox_messages(id, type, payload) VALUES ('lonely', 'thing-done', '{}')`, ""},
}

// answers are questions whose answers the contract promises, asked after all of it.
var answers = []struct{ sql, want string }{
	{`SELECT count(*) FROM outbox_messages`, "10"},
	// Seven events reached a and b once each, whatever number of their routes matched; the effect its one handler.
	{`SELECT group_concat(handler || n, ' ') FROM (SELECT handler, count(*) AS n FROM outbox_deliveries GROUP BY handler ORDER BY handler)`, "a8 b8 sender1 unrouted1"},
	{`SELECT group_concat(blocked, ' ') FROM outbox_deliveries WHERE handler = 'a' AND ordering_key = 'k'`, "0 1"},
	{`SELECT state FROM outbox_status WHERE id = 'lonely'`, "pending"},
	{`SELECT count(*) FROM pragma_table_info('outbox_records') WHERE name IN ('id', 'kind', 'type', 'schema_version', 'occurred_at', 'payload', 'tenant', 'state', 'attempt', 'next_attempt_at', 'last_error', 'completed_at')`, "12"},
	{`SELECT record FROM outbox_records WHERE id = 'lonely'`, "integration-events/thing-done"},
	{`SELECT hex(payload) FROM outbox_messages WHERE seq = 2`, "00FF"},
	{`SELECT count(DISTINCT id) = count(*) AND min(length(id)) > 4 FROM outbox_messages WHERE id NOT IN ('my-id', 'lonely')`, "1"},
	{`SELECT count(*) FROM outbox_messages WHERE abs(occurred_at / 1000000 - strftime('%s', 'now')) > 3600`, "0"},
}

func TestContract(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", ":memory:?_pragma=trusted_schema(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	for range 2 {
		if err := Install(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range contract {
		_, err := db.Exec(c.sql)
		checkContract(t, c.name, c.refused, err == nil, errorText(err))
	}
	for _, a := range answers {
		var got string
		if err := db.QueryRow(a.sql).Scan(&got); err != nil || got != a.want {
			t.Errorf("%s\n got %q, %v\nwant %q", a.sql, got, err, a.want)
		}
	}
}

// TestContractOnTheOldestSQLite holds the same statements against SQLite 3.37.0, the least version that the schema names.
func TestContractOnTheOldestSQLite(t *testing.T) {
	t.Parallel()
	var in bytes.Buffer
	for _, c := range contract {
		in.WriteString(c.sql + "\n")
	}
	for _, a := range answers {
		in.WriteString(a.sql + "\n")
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "../../schema.sql")
	cmd.Dir, cmd.Stdin = "testdata/oldest", &in
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for len(lines) > 0 && !strings.HasPrefix(lines[0], "version ") {
		lines = lines[1:] // what the go command says of downloads
	}
	if len(lines) != 1+len(contract)+len(answers) || lines[0] != "version 3.37.0" {
		t.Fatalf("unexpected output:\n%s", out)
	}
	lines = lines[1:]
	for i, c := range contract {
		checkContract(t, c.name, c.refused, strings.HasPrefix(lines[i], "ok"), lines[i])
	}
	for i, a := range answers {
		if got := strings.TrimPrefix(lines[len(contract)+i], "ok "); got != a.want {
			t.Errorf("%s\n got %q\nwant %q", a.sql, got, a.want)
		}
	}
}

func checkContract(t *testing.T, name, refused string, ok bool, text string) {
	t.Helper()
	switch {
	case refused == "" && !ok:
		t.Errorf("%s: refused: %s", name, text)
	case refused != "" && (ok || !strings.Contains(text, refused)):
		t.Errorf("%s: got %q, want it refused by %s", name, text, refused)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
