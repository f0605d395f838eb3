package destinations

import (
	"net/http"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/integrations/egress"
)

func TestUnusableDestinationIsHeldAndHeals(t *testing.T) {
	t.Parallel()
	st, target := newStore(t), newReceiver(t, http.StatusOK)
	b := st.boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo(target.URL)); err != nil {
		t.Fatal(err)
	}
	b.stop()
	for name, spoil := range map[string]func(*Config){
		"address": func(c *Config) { c.Egress = egress.Policy{} },
		"key":     func(c *Config) { c.Key = newStore(t).key },
	} {
		b = st.boot(t, spoil)
		v, err := b.Get(as(t, admin), "shop")
		if err != nil || v.State != Disabled || !strings.HasPrefix(v.Hold, "cannot be used: ") {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if _, err := b.Resume(as(t, admin), "shop"); codeOf(err) != "destination-unusable" {
			t.Errorf("%s: resume: %v", name, err)
		}
		if v, err := b.Pause(as(t, admin), "shop", ""); err != nil || v.State != Disabled {
			t.Errorf("%s: pause: %+v, %v", name, v, err)
		}
		b.stage(t, "main")
		b.stop()
	}
	if target.count() != 0 {
		t.Errorf("%d received while held", target.count())
	}
	b = st.boot(t, nil)
	eventually(t, "delivered", func() bool { return target.count() == 2 })
	if v, err := b.Get(as(t, admin), "shop"); err != nil || v.State != Flowing {
		t.Errorf("healed %+v, %v", v, err)
	}
}

func TestGoneTargetDisables(t *testing.T) {
	t.Parallel()
	target := newReceiver(t, http.StatusGone)
	b := newStore(t).boot(t, nil)
	if _, err := b.Create(as(t, admin), webhookTo(target.URL)); err != nil {
		t.Fatal(err)
	}
	b.stage(t, "main")
	eventually(t, "disabled", func() bool {
		v, err := b.Get(as(t, viewer), "shop")
		return err == nil && v.State == Disabled
	})
	b.stage(t, "main")
	eventually(t, "dead letter", func() bool { return b.count(t, countState, "shop", "dead-letter") == 1 })
	if n := b.count(t, countState, "shop", "pending"); n != 1 || target.count() != 1 {
		t.Errorf("%d pending, %d received; want 1 and 1", n, target.count())
	}
	target.mu.Lock()
	target.status = http.StatusOK
	target.mu.Unlock()
	if _, err := b.Resume(as(t, operator), "shop"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "delivered after it came back", func() bool { return b.count(t, countState, "shop", "dispatched") == 1 })
}
