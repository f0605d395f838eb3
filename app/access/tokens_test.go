package access_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	local    = access.Principal{Actor: "os:tester", Tenant: "main", Role: access.Admin}
	admin    = access.Principal{Actor: "token:boss", Tenant: "main", Role: access.Admin, TokenID: "tok_boss"}
	operator = access.Principal{Actor: "token:op", Tenant: "main", Role: access.Operator, TokenID: "tok_op"}
	stranger = access.Principal{Actor: "token:far", Tenant: "far", Role: access.Admin, TokenID: "tok_far"}
)

type bed struct {
	tokens *access.Tokens
	writer *outbox.Writer
	db     *sql.DB
}

func newBed(t *testing.T) *bed {
	t.Helper()
	schema, err := os.ReadFile("../../schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	dsn := "file:" + filepath.Join(t.TempDir(), "access.db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"
	write, err := sql.Open("sqlite", dsn+"&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	write.SetMaxOpenConns(1)
	if _, err := write.Exec(string(schema)); err != nil {
		t.Fatal(err)
	}
	read, err := sql.Open("sqlite", dsn+"&_pragma=query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	writer, err := outbox.NewWriter(bun.NewDB(write, sqlitedialect.New()), outbox.WriterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = writer.Close(context.Background())
		_ = read.Close()
		_ = write.Close()
	})
	return &bed{tokens: access.NewTokens(writer, bun.NewDB(read, sqlitedialect.New())), writer: writer, db: read}
}

func (b *bed) create(t *testing.T, by access.Principal, n access.NewToken) (access.Token, string) {
	t.Helper()
	token, text, err := b.tokens.Create(t.Context(), by, n)
	if err != nil {
		t.Fatal(err)
	}
	return token, text
}

func (b *bed) audit(t *testing.T) string {
	t.Helper()
	rows, err := b.db.Query(`SELECT tenant || ' ' || actor || ' ' || action || ' ' || subject FROM posthorn_audit ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestTokenIsShownOnceAndStoredHashed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	token, text := b.create(t, local, access.NewToken{Role: access.Operator})
	if !strings.HasPrefix(text, "ph_") || len(text) != 46 {
		t.Errorf("token text has %d characters", len(text))
	}
	if !strings.HasPrefix(token.Name, "operator-") || token.Tenant != "main" || token.CreatedBy != local.Actor {
		t.Errorf("token %+v", token)
	}
	for range 2 { // from the store, then from memory
		p, err := b.tokens.Verify(t.Context(), text)
		want := access.Principal{Actor: "token:" + token.Name, Tenant: "main", Role: access.Operator, TokenID: token.ID}
		if err != nil || p != want {
			t.Fatalf("verify: %+v, %v; want %+v", p, err, want)
		}
	}
	var stored int
	if err := b.db.QueryRow(`SELECT count(*) FROM posthorn_tokens WHERE instr(hash, ?) OR name = ? OR id = ?`, text, text, text).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the text is in the store %d times, %v", stored, err)
	}
	if got, want := b.audit(t), "main os:tester token.create "+token.ID; got != want {
		t.Errorf("audit %q, want %q", got, want)
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, text := b.create(t, local, access.NewToken{Role: access.Viewer})
	last := "A"
	if strings.HasSuffix(text, last) {
		last = "Q"
	}
	for _, bad := range []string{"", "ph_", text[:45], text + "A", text[3:], "PH_" + text[3:], text[:45] + last, " " + text,
		"ph_" + strings.Repeat("=", 43), "ph_" + strings.Repeat("A", 43), strings.Repeat("x", 1<<16)} {
		if p, err := b.tokens.Verify(t.Context(), bad); !errors.Is(err, access.ErrUnauthenticated) || p != (access.Principal{}) {
			t.Errorf("verify %.60q: %+v, %v", bad, p, err)
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if _, _, err := b.tokens.Create(t.Context(), local, access.NewToken{Role: access.Viewer, ExpiresAt: time.Now().Add(-time.Second)}); !errors.Is(err, access.ErrInvalidToken) {
		t.Errorf("a token that has expired already: %v", err)
	}
	expires := time.Now().Add(300 * time.Millisecond)
	_, text := b.create(t, local, access.NewToken{Role: access.Viewer, ExpiresAt: expires})
	if _, err := b.tokens.Verify(t.Context(), text); err != nil && time.Now().Before(expires) {
		t.Fatalf("verify before expiry: %v", err)
	}
	time.Sleep(time.Until(expires))
	if _, err := b.tokens.Verify(t.Context(), text); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("verify after expiry: %v", err)
	}
}

func TestRevocationHoldsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var told []string
	b.tokens.OnRevoke(func(id string) { told = append(told, id) })
	for i := range 6 {
		token, text := b.create(t, local, access.NewToken{Name: "ci", Role: access.Viewer})
		// Readers look the token up, and remember it, while it is revoked.
		var readers sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_, _ = b.tokens.Verify(context.Background(), text)
					}
				}
			})
		}
		by := []string{token.ID, "ci"}[i%2]
		if _, err := b.tokens.Revoke(t.Context(), admin, false, by); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if _, err := b.tokens.Verify(t.Context(), text); !errors.Is(err, access.ErrUnauthenticated) {
				t.Fatalf("verify after revocation: %v", err)
			}
		}
		close(stop)
		readers.Wait()
		if len(told) != i+1 || told[i] != token.ID {
			t.Fatalf("told of %v, want %s last", told, token.ID)
		}
		if _, err := b.tokens.Revoke(t.Context(), admin, false, token.ID); !errors.Is(err, access.ErrNoToken) {
			t.Fatalf("revoke twice: %v", err)
		}
	}
	if got := strings.Count(b.audit(t), "main token:boss token.revoke "); got != 6 {
		t.Errorf("%d revocations in the audit, want 6", got)
	}
}

// What somebody else changes in the store is seen by Valid at once, by Verify from then on, and within a minute in any case.
func TestStoreChangedBySomebodyElse(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		sql  string
		role access.Role // by now, if any
	}{
		"role":    {`UPDATE posthorn_tokens SET role = 'viewer' WHERE id = ?`, access.Viewer},
		"revoked": {`UPDATE posthorn_tokens SET revoked_at = 1 WHERE id = ?`, ""},
		"deleted": {`DELETE FROM posthorn_tokens WHERE id = ?`, ""},
	}
	for name, c := range changes {
		for how, wait := range map[string]func(*bed, string){
			"after Valid":    func(b *bed, id string) { _, _ = b.tokens.Valid(context.Background(), id) },
			"after a minute": func(*bed, string) { time.Sleep(time.Minute) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := newBed(t)
					token, text := b.create(t, local, access.NewToken{Role: access.Operator})
					if _, err := b.tokens.Verify(t.Context(), text); err != nil {
						t.Fatal(err)
					}
					err := b.writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
						_, err := tx.Tx.Tx.ExecContext(ctx, c.sql, token.ID)
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					wait(b, token.ID)
					p, err := b.tokens.Verify(t.Context(), text)
					if p.Role != c.role || (err == nil) != (c.role != "") || err != nil && !errors.Is(err, access.ErrUnauthenticated) {
						t.Errorf("verify: %+v, %v; want role %q", p, err, c.role)
					}
				})
			})
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.create(t, local, access.NewToken{Name: "taken", Role: access.Viewer})
	for name, c := range map[string]struct {
		by   access.Principal
		n    access.NewToken
		want error
	}{
		"operator":        {operator, access.NewToken{Role: access.Viewer}, access.ErrForbidden},
		"nobody":          {access.Principal{}, access.NewToken{Role: access.Viewer}, access.ErrForbidden},
		"foreign tenant":  {admin, access.NewToken{Role: access.Viewer, Tenant: "far"}, access.ErrForbidden},
		"no role":         {admin, access.NewToken{}, access.ErrInvalidToken},
		"unknown role":    {admin, access.NewToken{Role: "root"}, access.ErrInvalidToken},
		"bad name":        {admin, access.NewToken{Role: access.Viewer, Name: "a b"}, access.ErrInvalidToken},
		"newline in name": {admin, access.NewToken{Role: access.Viewer, Name: "a\n"}, access.ErrInvalidToken},
		"bad tenant":      {local, access.NewToken{Role: access.Viewer, Tenant: "*"}, access.ErrInvalidToken},
		"name taken":      {admin, access.NewToken{Role: access.Viewer, Name: "taken"}, access.ErrTokenExists},
	} {
		if _, text, err := b.tokens.Create(t.Context(), c.by, c.n); !errors.Is(err, c.want) || text != "" {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got := strings.Count(b.audit(t), "token.create"); got != 1 {
		t.Errorf("%d rows in the audit, want 1", got)
	}
}

func TestTokensOfOtherTenantsAreOutOfReach(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	mine, _ := b.create(t, local, access.NewToken{Name: "mine", Role: access.Viewer})
	theirs, text := b.create(t, local, access.NewToken{Name: "theirs", Role: access.Admin, Tenant: "far"})
	far, err := b.tokens.Verify(t.Context(), text)
	if err != nil || far.Tenant != "far" {
		t.Fatalf("verify: %+v, %v", far, err)
	}
	for _, c := range []struct {
		by    access.Principal
		alone bool
		want  int
	}{{local, false, 2}, {local, true, 1}, {admin, false, 1}, {stranger, false, 1}, {stranger, true, 1}} {
		if list, err := b.tokens.List(t.Context(), c.by, c.alone); err != nil || len(list) != c.want {
			t.Errorf("%s lists %d tokens, %v; want %d", c.by.Actor, len(list), err, c.want)
		}
	}
	if _, err := b.tokens.Revoke(t.Context(), stranger, false, mine.ID); !errors.Is(err, access.ErrNoToken) {
		t.Errorf("revoke a foreign token: %v", err)
	}
	if _, err := b.tokens.Revoke(t.Context(), local, true, theirs.ID); !errors.Is(err, access.ErrNoToken) {
		t.Errorf("revoke a token of another tenant than the one acted for: %v", err)
	}
	if _, err := b.tokens.Revoke(t.Context(), local, false, theirs.ID); err != nil {
		t.Errorf("revoke as the machine's user: %v", err)
	}
	if _, err := b.tokens.List(t.Context(), operator, false); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("list as operator: %v", err)
	}
}
