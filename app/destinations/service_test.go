package destinations

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

func codeOf(err error) string {
	var refusal *mediator.Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

func TestCreatedDestinationReceives(t *testing.T) {
	t.Parallel()
	st, target := newStore(t), newReceiver(t, http.StatusNoContent)
	b := st.boot(t, nil)
	created, err := b.Create(as(t, admin), webhookTo(target.URL+"/in"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(created.Secret, "whsec_") || created.State != Flowing || created.Concurrency != 16 || created.Timeout != "15s" || created.Order != Block {
		t.Errorf("created %+v", created.View)
	}
	b.stage(t, "main")
	b.stage(t, "far") // another tenant's: not for this destination
	eventually(t, "delivered", func() bool { return b.count(t, countState, "shop", "dispatched") == 1 })
	if target.headers.Get("webhook-signature") == "" {
		t.Error("the delivery is not signed")
	}
	if n := b.count(t, `SELECT count(*) FROM outbox_deliveries WHERE handler = 'unrouted' AND tenant = 'far'`); n != 1 || target.count() != 1 {
		t.Errorf("%d unrouted messages of the other tenant, %d received", n, target.count())
	}
	b.stop()
	for _, name := range []string{st.path, st.path + "-wal"} {
		if content, err := os.ReadFile(name); err == nil && bytes.Contains(content, []byte(created.Secret)) {
			t.Errorf("%s holds the secret in plain", filepath.Base(name))
		}
	}
	// The next boot signs with the same secret.
	signature := target.headers.Get("webhook-signature")
	b = st.boot(t, nil)
	b.stage(t, "main")
	eventually(t, "delivered after the restart", func() bool { return target.count() == 2 })
	if again := target.headers.Get("webhook-signature"); again == "" || again == signature {
		t.Errorf("signatures %q and %q", signature, again)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	b := newStore(t).boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo("https://example.com/")); err != nil {
		t.Fatal(err)
	}
	sound := func(change func(*NewDestination)) NewDestination {
		n := webhookTo("https://example.com/")
		n.Name = "other"
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		n    NewDestination
		want string
	}{
		"name taken":       {webhookTo("https://example.com/"), "destination-exists"},
		"name":             {sound(func(n *NewDestination) { n.Name = "Shop" }), "invalid-destination"},
		"name with dots":   {sound(func(n *NewDestination) { n.Name = "../x" }), "invalid-destination"},
		"reserved name":    {sound(func(n *NewDestination) { n.Name = "unrouted" }), "invalid-destination"},
		"kind":             {sound(func(n *NewDestination) { n.Kind = "kafka" }), "invalid-destination"},
		"no URL":           {sound(func(n *NewDestination) { n.URL = "" }), "invalid-destination"},
		"URL":              {sound(func(n *NewDestination) { n.URL = "ftp://example.com" }), "invalid-destination"},
		"private address":  {sound(func(n *NewDestination) { n.URL = "http://10.1.2.3/" }), "address-not-allowed"},
		"metadata address": {sound(func(n *NewDestination) { n.URL = "http://169.254.169.254/" }), "address-not-allowed"},
		"no types":         {sound(func(n *NewDestination) { n.Types = nil }), "invalid-destination"},
		"too many types":   {sound(func(n *NewDestination) { n.Types = strings.Split(strings.Repeat("a ", 101), " ") }), "invalid-destination"},
		"type":             {sound(func(n *NewDestination) { n.Types = []string{"[a-z]"} }), "invalid-destination"},
		"concurrency":      {sound(func(n *NewDestination) { n.Concurrency = 257 }), "invalid-destination"},
		"timeout":          {sound(func(n *NewDestination) { n.Timeout = "1h" }), "invalid-destination"},
		"timeout form":     {sound(func(n *NewDestination) { n.Timeout = "15" }), "invalid-destination"},
		"order":            {sound(func(n *NewDestination) { n.Order = "random" }), "invalid-destination"},
		"path of webhook":  {sound(func(n *NewDestination) { n.Path = "/tmp/x" }), "invalid-destination"},
		"file not allowed": {NewDestination{Name: "out", Kind: File, Path: "/etc/passwd", Types: []string{"*"}}, "invalid-destination"},
		"relative file":    {NewDestination{Name: "out", Kind: File, Path: "x.jsonl", Types: []string{"*"}}, "invalid-destination"},
	} {
		if _, err := b.Create(as(t, admin), c.n); codeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM posthorn_audit`); n != 1 {
		t.Errorf("%d audit rows, want 1", n)
	}
	if n := b.count(t, `SELECT count(*) FROM outbox_routes`); n != 1 {
		t.Errorf("%d routes, want 1", n)
	}
}

func TestRolesAndTenants(t *testing.T) {
	t.Parallel()
	b := newStore(t).boot(t, nil)
	if _, err := b.Create(as(t, operator), webhookTo("https://example.com/")); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("create as operator: %v", err)
	}
	if _, err := b.Create(as(t, admin), webhookTo("https://example.com/secret-path?key=1")); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Get(as(t, viewer), "shop"); err != nil || v.URL != "https://example.com/…" {
		t.Errorf("a viewer sees %q, %v", v.URL, err)
	}
	if v, err := b.Get(as(t, operator), "shop"); err != nil || v.URL != "https://example.com/secret-path?key=1" {
		t.Errorf("an operator sees %q, %v", v.URL, err)
	}
	for name, try := range map[string]func(context.Context) error{
		"get":    func(ctx context.Context) error { _, err := b.Get(ctx, "shop"); return err },
		"delete": func(ctx context.Context) error { _, err := b.Delete(ctx, "shop"); return err },
		"pause":  func(ctx context.Context) error { _, err := b.Pause(ctx, "shop", ""); return err },
		"resume": func(ctx context.Context) error { _, err := b.Resume(ctx, "shop"); return err },
	} {
		if err := try(as(t, stranger)); codeOf(err) != "unknown-destination" {
			t.Errorf("%s of another tenant's: %v", name, err)
		}
		if err := try(t.Context()); !errors.Is(err, access.ErrUnauthenticated) {
			t.Errorf("%s as nobody: %v", name, err)
		}
		if err := try(as(t, viewer)); name != "get" && !errors.Is(err, access.ErrForbidden) {
			t.Errorf("%s as viewer: %v", name, err)
		}
	}
	if page, err := b.List(as(t, stranger), "", 0); err != nil || len(page.Destinations) != 0 {
		t.Errorf("list of another tenant: %+v, %v", page, err)
	}
}

func TestListIsPaged(t *testing.T) {
	t.Parallel()
	b := newStore(t).boot(t, nil)
	for _, name := range []string{"c", "a", "b"} {
		n := webhookTo("https://example.com/")
		n.Name = name
		if _, err := b.Create(as(t, admin), n); err != nil {
			t.Fatal(err)
		}
	}
	first, err := b.List(as(t, viewer), "", 2)
	if err != nil || len(first.Destinations) != 2 || !first.More || first.Destinations[1].Name != "b" {
		t.Fatalf("first page %+v, %v", first, err)
	}
	second, err := b.List(as(t, viewer), "b", 2)
	if err != nil || len(second.Destinations) != 1 || second.More || second.Destinations[0].Name != "c" {
		t.Fatalf("second page %+v, %v", second, err)
	}
	if _, err := b.List(as(t, viewer), "", 201); codeOf(err) != "invalid-page" {
		t.Errorf("a page of 201: %v", err)
	}
}

func TestPauseOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	st, target := newStore(t), newReceiver(t, http.StatusOK)
	b := st.boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo(target.URL)); err != nil {
		t.Fatal(err)
	}
	v, err := b.Pause(as(t, operator), "shop", "ledger closed")
	if err != nil || v.State != Paused || v.Hold != "paused by token:op: ledger closed" {
		t.Fatalf("paused %+v, %v", v, err)
	}
	b.stage(t, "main")
	b.stop()
	b = st.boot(t, nil)
	if v, err := b.Get(as(t, viewer), "shop"); err != nil || v.State != Paused {
		t.Fatalf("after the restart %+v, %v", v, err)
	}
	if n := b.count(t, countState, "shop", "pending"); n != 1 || target.count() != 0 {
		t.Fatalf("%d pending, %d received", n, target.count())
	}
	if v, err = b.Resume(as(t, operator), "shop"); err != nil || v.State != Flowing || v.Hold != "" {
		t.Fatalf("resumed %+v, %v", v, err)
	}
	eventually(t, "delivered", func() bool { return target.count() == 1 })
	if n := b.count(t, `SELECT count(*) FROM posthorn_audit WHERE actor = 'token:op' AND action IN ('destination.pause', 'destination.resume')`); n != 2 {
		t.Errorf("%d audit rows, want 2", n)
	}
	if _, err := b.Pause(as(t, operator), "shop", "a\nb"); codeOf(err) != "invalid-reason" {
		t.Errorf("a reason on two lines: %v", err)
	}
}

func TestDeleteCancelsWhatIsPending(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	b := st.boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo("https://example.com/")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pause(as(t, admin), "shop", ""); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.stage(t, "main")
	}
	deleted, err := b.Delete(as(t, admin), "shop")
	if err != nil || deleted.Cancelled != 3 {
		t.Fatalf("deleted %+v, %v", deleted, err)
	}
	if n := b.count(t, `SELECT count(*) FROM outbox_deliveries WHERE handler = 'shop' AND state = 'dead-letter' AND failure_class = 'cancelled'
		AND last_error = 'the destination was deleted by token:boss'`); n != 3 {
		t.Errorf("%d cancelled, want 3", n)
	}
	if n := b.count(t, `SELECT (SELECT count(*) FROM outbox_routes) + (SELECT count(*) FROM outbox_lanes) + (SELECT count(*) FROM posthorn_meta WHERE name GLOB 'leaving:*')`); n != 0 {
		t.Errorf("%d rows left", n)
	}
	if _, err := b.Delete(as(t, admin), "shop"); codeOf(err) != "unknown-destination" {
		t.Errorf("delete twice: %v", err)
	}
	if v, err := b.Create(as(t, admin), webhookTo("https://example.com/")); err != nil || v.State != Flowing {
		t.Errorf("create again: %+v, %v", v, err)
	}
}

func TestInterruptedDeletionIsFinishedByTheNextBoot(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	b := st.boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo("https://example.com/")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pause(as(t, admin), "shop", ""); err != nil {
		t.Fatal(err)
	}
	b.stage(t, "main")
	// As the commit of a deletion leaves it, when the process ends before anything is settled.
	b.do(t, func(ctx context.Context, tx *outbox.Tx) error {
		_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO posthorn_meta(name, value) VALUES ('leaving:shop', 'deleted by somebody');
			DELETE FROM posthorn_destinations; DELETE FROM outbox_routes`)
		return err
	})
	if _, err := b.Create(as(t, admin), webhookTo("https://example.com/")); codeOf(err) != "destination-leaving" {
		t.Errorf("create while the old one is leaving: %v", err)
	}
	b.stop()
	b = st.boot(t, nil)
	if n := b.count(t, countState, "shop", "dead-letter"); n != 1 {
		t.Errorf("%d cancelled, want 1", n)
	}
	if _, err := b.Create(as(t, admin), webhookTo("https://example.com/")); err != nil {
		t.Errorf("create afterwards: %v", err)
	}
}
