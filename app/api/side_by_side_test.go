package api_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/posthorn/posthorn/app/api"
)

func withMetrics(deps *api.Deps) {
	deps.Routes = append(deps.Routes, api.Route{Pattern: "GET /metrics", Handler: http.NotFoundHandler()})
}

// TestAPIsAreMadeSideBySide: they share nothing that making one writes to, which the race detector watches.
func TestAPIsAreMadeSideBySide(t *testing.T) {
	t.Parallel()
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() { newBed(t, withMetrics) })
	}
	work.Wait()
}
