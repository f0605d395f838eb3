package destinations

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/integrations/webhook"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// signatures are how many secrets the last delivery was signed with.
func (r *receiver) signatures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(strings.Fields(r.headers.Get("webhook-signature")))
}

func TestARotatedSecretSignsBesideTheOldOne(t *testing.T) {
	t.Parallel()
	st, target := newStore(t), newReceiver(t, http.StatusNoContent)
	b := st.boot(t, nil)
	created, err := b.Create(as(t, admin), webhookTo(target.URL))
	if err != nil {
		t.Fatal(err)
	}
	delivered := 0
	deliver := func(want int) {
		t.Helper()
		delivered++
		b.stage(t, "main")
		eventually(t, "delivered", func() bool { return target.count() == delivered })
		if got := target.signatures(); got != want {
			t.Errorf("%d signatures, want %d", got, want)
		}
	}
	deliver(1)
	rotated, err := b.RotateSecret(as(t, admin), "shop", nil)
	if err != nil || !strings.HasPrefix(rotated.Secret, "whsec_") || rotated.Secret == created.Secret {
		t.Fatalf("rotated: %+v, %v", rotated.View, err)
	}
	deliver(1) // these defaults have no overlap
	hour := time.Hour
	if _, err := b.RotateSecret(as(t, admin), "shop", &hour); err != nil {
		t.Fatal(err)
	}
	deliver(2)
	b.stop()
	b = st.boot(t, nil)
	deliver(2)
	for range webhook.MaxSecrets - 2 {
		if _, err := b.RotateSecret(as(t, admin), "shop", &hour); err != nil {
			t.Fatal(err)
		}
	}
	deliver(webhook.MaxSecrets)
	rows := b.count(t, `SELECT count(*) FROM posthorn_audit`)
	_, err = b.RotateSecret(as(t, admin), "shop", &hour)
	refused := new(mediator.Refusal)
	if !errors.As(err, &refused) || refused.Code != "too-many-secrets" || refused.Kind != mediator.Conflict || !strings.Contains(refused.Hint, "--overlap 0s") {
		t.Fatalf("one secret more than can sign: %v", err)
	}
	if end := regexp.MustCompile(`ends at (\S+Z)\.`).FindStringSubmatch(refused.Sentence); end == nil {
		t.Errorf("it does not say when there is room: %s", refused.Sentence)
	} else if at, err := time.Parse(time.RFC3339, end[1]); err != nil || time.Until(at) > time.Hour || time.Until(at) < 50*time.Minute {
		t.Errorf("there is said to be room at %s", end[1])
	}
	if n := b.count(t, `SELECT count(*) FROM posthorn_audit`); n != rows {
		t.Errorf("the refusal left %d rows in the audit", n-rows)
	}
	deliver(webhook.MaxSecrets) // none was dropped
	none := time.Duration(0)
	if _, err := b.RotateSecret(as(t, admin), "shop", &none); err != nil {
		t.Fatal(err)
	}
	deliver(1)
}

func TestAChangedDestinationDeliversWhatWasPending(t *testing.T) {
	t.Parallel()
	st, broken, sound := newStore(t), newReceiver(t, http.StatusServiceUnavailable), newReceiver(t, http.StatusNoContent)
	b := st.boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo(broken.URL)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pause(as(t, operator), "shop", ""); err != nil {
		t.Fatal(err)
	}
	b.stage(t, "main")
	four, order, types := 4, Skip, []string{"parcel-*"}
	view, err := b.Alter(as(t, admin), "shop", Change{URL: &sound.URL, Concurrency: &four, Order: &order, Types: types})
	if err != nil || view.URL != sound.URL || view.Concurrency != 4 || view.Order != Skip || view.Timeout != "15s" || view.State != Paused {
		t.Fatalf("changed: %+v, %v", view, err)
	}
	b.stage(t, "main") // no longer one of its types
	if _, err := b.Resume(as(t, operator), "shop"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "delivered to the new address", func() bool { return sound.count() == 1 })
	if n := b.count(t, `SELECT count(*) FROM outbox_deliveries WHERE handler = 'unrouted'`); n != 1 || broken.count() != 0 {
		t.Errorf("%d unrouted, %d sent to the old address", n, broken.count())
	}
	if n := b.count(t, `SELECT count(*) FROM posthorn_audit WHERE action = 'destination.change' AND detail LIKE 'url, types, concurrency, order; %'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	b.stop()
	b = st.boot(t, nil)
	if again, err := b.Get(as(t, admin), "shop"); err != nil || again.URL != sound.URL || again.Types[0] != "parcel-*" || again.Concurrency != 4 {
		t.Errorf("after the restart %+v, %v", again, err)
	}
}

func TestReshapingRefuses(t *testing.T) {
	t.Parallel()
	b := newStore(t).boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo("https://example.com/")); err != nil {
		t.Fatal(err)
	}
	before, err := b.Get(as(t, admin), "shop")
	if err != nil {
		t.Fatal(err)
	}
	metadata, path, long, much := "http://169.254.169.254/", "x.jsonl", MaxOverlap+1, MaxConcurrency+1
	for name, c := range map[string]struct {
		by     access.Principal
		change Change
		want   string
	}{
		"nothing":          {admin, Change{}, "invalid-destination"},
		"metadata address": {admin, Change{URL: &metadata}, "address-not-allowed"},
		"path of a file":   {admin, Change{Path: &path}, "invalid-destination"},
		"no types":         {admin, Change{Types: []string{}}, "invalid-destination"},
		"concurrency":      {admin, Change{Concurrency: &much}, "invalid-destination"},
		"another tenant's": {stranger, Change{Concurrency: new(int)}, "unknown-destination"},
	} {
		if _, err := b.Alter(as(t, c.by), "shop", c.change); codeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.RotateSecret(as(t, admin), "shop", &long); codeOf(err) != "invalid-overlap" {
		t.Errorf("long overlap: %v", err)
	}
	for name, err := range map[string]error{
		"change by an operator":   second(b.Alter(as(t, operator), "shop", Change{Concurrency: new(int)})),
		"rotation by an operator": second(b.RotateSecret(as(t, operator), "shop", nil)),
		"trial by a viewer":       second(b.Try(as(t, viewer), "shop")),
	} {
		if err == nil || codeOf(err) == "unknown-destination" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, err := b.Get(as(t, admin), "shop"); err != nil || after.URL != before.URL || after.Concurrency != before.Concurrency {
		t.Errorf("refusals changed it to %+v, %v", after, err)
	}
	if n := b.count(t, `SELECT count(*) FROM posthorn_audit`); n != 1 {
		t.Errorf("%d audit rows, want that of the creation", n)
	}
}

func second[T any](_ T, err error) error { return err }

func TestATrialGoesPastThePause(t *testing.T) {
	t.Parallel()
	b, target := newStore(t).boot(t, nil), newReceiver(t, http.StatusNoContent)
	if _, err := b.Create(as(t, admin), webhookTo(target.URL)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pause(as(t, operator), "shop", ""); err != nil {
		t.Fatal(err)
	}
	trial, err := b.Try(as(t, operator), "shop")
	if err != nil || !trial.Delivered || target.headers.Get("webhook-id") != string(trial.MessageID) || target.headers.Get("posthorn-type") != TrialType {
		t.Errorf("tried: %+v, %v", trial, err)
	}
	target.mu.Lock()
	target.status = http.StatusTeapot
	target.mu.Unlock()
	if trial, err = b.Try(as(t, operator), "shop"); err != nil || trial.Delivered || trial.Class != outbox.Rejected || trial.Status != http.StatusTeapot {
		t.Errorf("refused: %+v, %v", trial, err)
	}
	if n := b.count(t, `SELECT (SELECT count(*) FROM outbox_messages) + (SELECT count(*) FROM outbox_deliveries)`); n != 0 {
		t.Errorf("a trial left %d rows", n)
	}
	if _, err := b.Try(as(t, stranger), "shop"); codeOf(err) != "unknown-destination" {
		t.Errorf("another tenant's: %v", err)
	}
}
