package api_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/posthorn/posthorn/app/api"
)

// TestAPIsAreMadeSideBySide: they share nothing that making one writes to, which the race detector watches.
func TestAPIsAreMadeSideBySide(t *testing.T) {
	t.Parallel()
	var deps api.Deps
	newBed(t, func(d *api.Deps) {
		d.Routes = append(d.Routes, api.Route{Pattern: "GET /metrics", Handler: http.NotFoundHandler()})
		deps = *d
	})
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			if _, err := api.New(deps); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}
