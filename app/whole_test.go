package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
)

// seen asks the API as the machine's own user.
func seen(t *testing.T, a *Appliance, path string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	a.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(access.With(t.Context(), access.LocalPrincipal()), http.MethodGet, path, nil))
	return answer.Body.String()
}

const fanOut = "trigger outbox_messages_fan_out"

// TestATriggerDroppedUnderARunningProcess drops the trigger that fans out from another connection, as the application's tools may, and puts it back.
func TestATriggerDroppedUnderARunningProcess(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	must(t, db, pay)
	<-ids
	bare := func() int64 {
		return number(t, db, `SELECT count(*) FROM outbox_messages m WHERE NOT EXISTS (SELECT 1 FROM outbox_deliveries d WHERE d.seq = m.seq)`)
	}
	unrouted := func() int64 {
		return number(t, db, `SELECT count(*) FROM outbox_deliveries WHERE handler = 'unrouted' AND state = 'pending'`)
	}

	must(t, db, `DROP TRIGGER outbox_messages_fan_out`)
	const staged = adoptBatch + 3 // more than one command gives
	for range staged {
		must(t, db, pay)
	}
	eventually(t, "it is noticed", func() bool { return slices.Equal(a.whole.Missing(), []string{fanOut}) })
	if ready := seen(t, a, "/readyz"); !strings.Contains(ready, `"status":"degraded"`) || !strings.Contains(ready, `"code":"outbox-incomplete"`) || strings.Contains(ready, "fan_out") {
		t.Errorf("/readyz: %s", ready)
	}
	if n := bare(); n != staged || unrouted() != 0 {
		t.Errorf("%d messages without a delivery, want %d: they are not mended while the trigger is gone", n, staged)
	}

	must(t, db, besideSchema(schema(t)))
	eventually(t, "each has a delivery", func() bool { return bare() == 0 })
	eventually(t, "it is whole", func() bool { return a.whole.Missing() == nil })
	if n := unrouted(); n != staged {
		t.Errorf("%d deliveries for unrouted, want %d", n, staged)
	}
	eventually(t, "they are counted", func() bool {
		_, line, _ := strings.Cut(seen(t, a, "/v1/backlog"), `"handler":"unrouted"`)
		return strings.Contains(line, `"pending":203`)
	})
	if ready := seen(t, a, "/readyz"); strings.Contains(ready, "outbox-incomplete") {
		t.Errorf("/readyz: %s", ready)
	}

	// Between two looks nobody sees it missing, only that the schema has changed.
	must(t, db, `BEGIN; DROP TRIGGER outbox_messages_fan_out; `+pay+`; COMMIT;`+besideSchema(schema(t)))
	eventually(t, "the one staged in between has a delivery", func() bool { return bare() == 0 })
	must(t, db, pay)
	<-ids

	// A start refuses, and the next one finds what was staged meanwhile.
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := unrouted()
	must(t, db, `DROP TRIGGER outbox_messages_fan_out; `+pay)
	if _, err := Open(t.Context(), besideOptions(t, path)); !errors.Is(err, errIncomplete) {
		t.Fatalf("start: %v", err)
	}
	must(t, db, besideSchema(schema(t)))
	a = open(t, besideOptions(t, path))
	eventually(t, "what was staged before the start has a delivery", func() bool { return bare() == 0 && unrouted() == before+1 })
	ctx := access.With(t.Context(), access.LocalPrincipal())
	if _, err := a.destinations.Backfill(ctx, "shop", time.Time{}, time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	for range staged + 2 {
		<-ids
	}
}
