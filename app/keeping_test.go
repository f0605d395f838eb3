package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
)

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	a := open(t, testOptions(t, t.TempDir()))
	for _, c := range []struct {
		name string
		by   *access.Principal
		want int
	}{{"nobody", nil, 401}, {"the machine's own user", new(access.LocalPrincipal()), 200}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/metrics", nil)
		if c.by != nil {
			r = r.WithContext(access.With(r.Context(), *c.by))
		}
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		if w.Code != c.want || c.want == 200 && !strings.Contains(w.Body.String(), "\noutbox_store_up 1\n") {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
}
