package horn_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// scene is an appliance in the middle of a day: destinations that flow, fail, wait and are paused, with traffic that goes on.
type scene struct {
	*program
	failed, done string // ids of messages with a story
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{program: newProgram(t, quickRetries)}
	var n atomic.Int64
	serve := func(answer func(w http.ResponseWriter)) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		return server.URL
	}
	well := serve(func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) })
	slow := serve(func(w http.ResponseWriter) { time.Sleep(150 * time.Millisecond) })
	flaky := serve(func(w http.ResponseWriter) {
		if n.Add(1)%3 == 1 {
			http.Error(w, "upstream is being restarted", http.StatusServiceUnavailable)
		}
	})
	refusing := serve(func(w http.ResponseWriter) {
		http.Error(w, `{"error":"unknown_order","message":"this order was never announced to us"}`, http.StatusUnprocessableEntity)
	})
	s.destination("shop", well+"/hooks/orders", "*")
	s.destination("warehouse", slow+"/hooks", "order-*")
	s.destination("billing", flaky+"/v2/events/inbound", "order-placed")
	s.destination("crm", refusing+"/api/webhooks/incoming", "order-cancelled")
	s.destination("archive", well+"/archive", "*")
	s.must(http.StatusOK, http.MethodPost, "/v1/destinations/archive/pause", `{}`)
	for i := range 24 {
		s.order(1000+i, "order-placed")
	}
	s.failed = s.order(1003, "order-cancelled")
	s.order(1007, "order-cancelled")
	s.done = s.order(1042, "order-placed")
	waitFor(t, "there are dead letters", func() bool {
		var backlog struct{ Total struct{ Failed int64 } }
		s.read("/v1/backlog", &backlog)
		return backlog.Total.Failed >= 2
	})
	return s
}

// traffic goes on until the returned function is called.
func (s *scene) traffic() (stop func()) {
	quit := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for i := 2000; ; i++ {
			select {
			case <-quit:
				return
			case <-time.After(200 * time.Millisecond):
				event := []string{"order-placed", "order-placed", "order-placed", "order-placed", "order-cancelled"}[i%5]
				if status, text, err := s.send("Bearer "+s.token, http.MethodPost, "/v1/transactions", orderBody(i, event)); err != nil || status != http.StatusCreated {
					s.t.Errorf("traffic: %d %s %v", status, text, err)
					return
				}
			}
		}
	})
	return func() {
		close(quit)
		work.Wait()
	}
}

// TestViews visits every view of a busy appliance, wide and narrow, light and dark: it is there and live, nothing reaches over the edge, and
// the browser complains about nothing, the content security policy included.
func TestViews(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	defer s.traffic()()
	views := []struct{ name, path, text string }{
		{"overview", "/", "Happening now"},
		{"messages", "/messages", "order-placed"},
		{"dead-letters", "/messages?state=dead-letter", "Dead letter"},
		{"message-dead", "/messages/" + s.failed, "It stays here until it is replayed"},
		{"message", "/messages/" + s.done, "Payload"},
		{"destinations", "/destinations", "paused by token:shop"},
		{"destination", "/destinations/crm", "Latest messages"},
		{"destination-held", "/destinations/archive", "Latest messages"},
		{"documents-start", "/documents", "Documents"},
		{"documents", "/documents/orders", "1003"},
		{"document", "/documents/orders/1003", "Version"},
	}
	tb := s.enter(s.url, "/")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390, 360} {
			if scheme == "dark" && width == 360 {
				continue
			}
			tb.scheme(scheme)
			tb.do(chromedp.EmulateViewport(width, map[int64]int64{1440: 900, 390: 844, 360: 740}[width]))
			for _, view := range views {
				tb.goTo(view.path)
				tb.shows(view.text)
				tb.phase("live")
				if over := eval[int](tb, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
					t.Errorf("%s at %d px reaches %d px over the edge", view.name, width, over)
				}
				tb.shot(fmt.Sprintf("%s-%s-%d", view.name, scheme, width))
			}
		}
	}
	tb.clean()
}

// shot keeps a picture where somebody asked for pictures: POSTHORN_SHOTS=/tmp/shots go test ./app/horn -run Views.
func (tb *tab) shot(name string) {
	tb.t.Helper()
	folder := os.Getenv("POSTHORN_SHOTS")
	if folder == "" {
		return
	}
	time.Sleep(600 * time.Millisecond) // what moves comes to rest
	picture, err := chromedp.Run(tb.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		tb.t.Fatalf("take picture: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		tb.t.Errorf("keep picture: %v", err)
	}
}
