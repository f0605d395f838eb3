package destinations

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/integrations/pull"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

func code(err error) string {
	if refusal := (*mediator.Refusal)(nil); errors.As(err, &refusal) {
		return refusal.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func pullBed(t *testing.T, lease string) *bed {
	t.Helper()
	b := newStore(t).boot(t, nil)
	if _, err := b.Create(as(t, admin), NewDestination{Name: "till", Kind: Pull, Types: []string{"order-*"}, Timeout: lease}); err != nil {
		t.Fatal(err)
	}
	return b
}

// stageKeyed stages messages of one ordering key.
func (b *bed) stageKeyed(t *testing.T, key string, n int) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *outbox.Tx) error {
		for i := range n {
			_, err := outbox.Stage(ctx, tx, outbox.Message{ID: outbox.MessageID(fmt.Sprintf("%s-%d", key, i)), Type: "order-placed", OrderingKey: key, Payload: []byte(`{}`)})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// next asks until there is something.
func (b *bed) next(t *testing.T, most int) []pull.Handed {
	t.Helper()
	for range 60 {
		got, err := b.Pull(as(t, operator), "till", most, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Deliveries) > 0 {
			return got.Deliveries
		}
	}
	t.Fatal("nothing came")
	return nil
}

func (b *bed) settleAs(t *testing.T, h pull.Handed, result Result) error {
	t.Helper()
	_, err := b.Settle(as(t, operator), "till", Settlement{Delivery: h.ID, Fence: h.Fence, Result: result})
	return err
}

func TestPullKeepsTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	b := pullBed(t, "5m")
	b.stageKeyed(t, "a", 5)
	for i := range 5 {
		got := b.next(t, 10)
		if len(got) != 1 || string(got[0].Message.ID) != fmt.Sprintf("a-%d", i) {
			t.Fatalf("step %d: got %+v", i, got)
		}
		if i == 2 { // what is returned comes again, before the rest
			if err := b.settleAs(t, got[0], ResultReleased); err != nil {
				t.Fatal(err)
			}
			again := b.next(t, 10)
			if len(again) != 1 || again[0].ID != got[0].ID || again[0].Fence <= got[0].Fence || again[0].Attempt != 2 || again[0].Charged != 1 {
				t.Fatalf("released, then %+v", again)
			}
			if got := code(b.settleAs(t, got[0], ResultDelivered)); got != "stale-fence" {
				t.Fatalf("the earlier fence: %s", got)
			}
			got = again
		}
		if err := b.settleAs(t, got[0], ResultDelivered); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.count(t, countState, "till", "dispatched"); n != 5 {
		t.Errorf("%d dispatched", n)
	}
	if backlog, err := b.dispatcher.Backlog(t.Context()); err != nil || backlog.Total.Stale != 1 {
		t.Errorf("stale settlements are not counted: %+v, %v", backlog.Lanes, err)
	}
}

func TestPullSettles(t *testing.T) {
	t.Parallel()
	b := pullBed(t, "5m")
	for _, tt := range []struct {
		result     Result
		state      string
		class      string
		charged    int
		attempts   int
		settleCode string
	}{
		{ResultDelivered, "dispatched", "", 1, 0, ""}, // to say it again is no mistake
		{ResultFailed, "pending", "failed", 1, 1, "stale-fence"},
		{ResultThrottled, "pending", "throttled", 0, 1, "stale-fence"},
		{ResultRejected, "dead-letter", "rejected", 1, 1, "stale-fence"},
	} {
		b.stage(t, "main")
		h := b.next(t, 1)[0]
		if err := b.settleAs(t, h, tt.result); err != nil {
			t.Fatalf("%s: %v", tt.result, err)
		}
		var state, class string
		var charged, attempts int
		err := b.db.QueryRow(`SELECT state, coalesce(failure_class, ''), charged, (SELECT count(*) FROM outbox_attempts WHERE delivery = d.id) FROM outbox_deliveries d WHERE id = ?`,
			int64(h.ID)).Scan(&state, &class, &charged, &attempts)
		if err != nil || state != tt.state || class != tt.class || charged != tt.charged || attempts != tt.attempts {
			t.Errorf("%s: %s %q, %d charged, %d attempts, %v", tt.result, state, class, charged, attempts, err)
		}
		if got := code(b.settleAs(t, h, tt.result)); got != tt.settleCode {
			t.Errorf("%s again: %q", tt.result, got)
		}
	}
}

func TestPullLeaseRunsOut(t *testing.T) {
	t.Parallel()
	b := pullBed(t, "1s")
	b.stage(t, "main")
	h := b.next(t, 1)[0]
	eventually(t, "the delivery returns to pending", func() bool { return b.count(t, countState, "till", "pending") == 1 })
	if got := code(b.settleAs(t, h, ResultDelivered)); got != "stale-fence" {
		t.Errorf("settled after the lease: %s", got)
	}
	if n := b.count(t, `SELECT charged FROM outbox_deliveries`); n != 1 {
		t.Errorf("%d charged", n)
	}
}

func TestPullIsTheTenantsOperators(t *testing.T) {
	t.Parallel()
	b := pullBed(t, "")
	b.stage(t, "main")
	h := b.next(t, 1)[0]
	far := stranger
	far.Role = access.Operator
	for name, by := range map[string]access.Principal{"viewer": viewer, "another tenant": far} {
		_, err := b.Pull(as(t, by), "till", 1, time.Second)
		_, settleErr := b.Settle(as(t, by), "till", Settlement{Delivery: h.ID, Fence: h.Fence, Result: ResultDelivered})
		if name == "viewer" && (!errors.Is(err, access.ErrForbidden) || !errors.Is(settleErr, access.ErrForbidden)) {
			t.Errorf("%s: %v, %v", name, err, settleErr)
		}
		if name == "another tenant" && (code(err) != "unknown-destination" || code(settleErr) != "unknown-destination") {
			t.Errorf("%s: %v, %v", name, err, settleErr)
		}
	}
	if err := b.settleAs(t, h, ResultDelivered); err != nil {
		t.Error(err)
	}
}

func TestPullRefuses(t *testing.T) {
	t.Parallel()
	b := pullBed(t, "")
	if _, err := b.Create(as(t, admin), webhookTo("http://127.0.0.1:1/")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		most int
		wait time.Duration
		want string
	}{
		{"till", 0, time.Second, "invalid-pull"}, {"till", 101, time.Second, "invalid-pull"}, {"till", 1, 0, "invalid-pull"}, {"till", 1, time.Minute, "invalid-pull"},
		{"shop", 1, time.Second, "not-a-pull-destination"}, {"none", 1, time.Second, "unknown-destination"},
	} {
		if _, err := b.Pull(as(t, operator), tt.name, tt.most, tt.wait); code(err) != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for _, s := range []Settlement{
		{Result: "done"}, {Result: ResultDelivered, After: time.Second}, {Result: ResultFailed, After: -1}, {Result: ResultFailed, Error: "two\nlines"},
		{Result: ResultDelivered, Error: "no error"},
	} {
		if _, err := b.Settle(as(t, operator), "till", s); code(err) != "invalid-settlement" {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestPullEndsWithTheProcess: what is held goes back uncharged, and whoever waits is answered.
func TestPullEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	b := st.boot(t, nil)
	if _, err := b.Create(as(t, admin), NewDestination{Name: "till", Kind: Pull, Types: []string{"order-*"}}); err != nil {
		t.Fatal(err)
	}
	b.stage(t, "main")
	h := b.next(t, 1)[0]
	answered := make(chan error, 1)
	go func() {
		got, err := b.Pull(as(t, operator), "till", 1, 30*time.Second)
		if len(got.Deliveries) > 0 {
			err = errors.New("got what another one holds")
		}
		answered <- err
	}()
	b.EndLeases()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	b.stop()
	b = st.boot(t, nil)
	if got := code(b.settleAs(t, h, ResultDelivered)); got != "stale-fence" {
		t.Errorf("a lease of the boot before: %s", got)
	}
	if again := b.next(t, 1)[0]; again.ID != h.ID || again.Attempt != 2 || again.Charged != 1 {
		t.Errorf("after the restart: %+v", again)
	}
}
