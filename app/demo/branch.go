package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/posthorn/posthorn/app/cli/client"
)

// branch is a small library beside the depot: it is filled once, and lends and takes back gently.
type branch struct {
	depot *depot
	lent  []string // the numbers of the copies that this run lent, or found on loan when it began
}

var works = []struct{ id, title string }{
	{"moby-dick", "Moby-Dick"}, {"middlemarch", "Middlemarch"}, {"the-post-office", "The Post Office"},
	{"walden", "Walden"}, {"dracula", "Dracula"}, {"the-trial", "The Trial"},
}

const (
	branchMembers = 8
	// branchPace is how many steps of the depot there are to one of the branch.
	branchPace = 4
)

func memberNumber(i int) string { return fmt.Sprintf("M-%d", 101+i) }
func copyNumber(i int) string   { return fmt.Sprintf("C-%d", 101+i) }

// open fills the branch. Whatever is there already stays; false: the branch is off.
func (b *branch) open(ctx context.Context) bool {
	for i := range branchMembers {
		name := recipients[i%len(recipients)]
		ask := map[string]string{"id": memberNumber(i), "name": name, "email": strings.ToLower(strings.ReplaceAll(name, " ", ".")) + "@example.org"}
		if found := b.post(ctx, "/v1/lending/members", ask); found == http.StatusNotFound || ctx.Err() != nil {
			return false
		}
	}
	for i := range 2 * len(works) {
		work := works[i%len(works)]
		b.post(ctx, "/v1/lending/copies", map[string]string{"id": copyNumber(i), "work": work.id, "title": work.title})
	}
	var page struct{ Loans []struct{ Copy string } }
	b.get(ctx, "/v1/lending/loans", &page)
	for _, loan := range page.Loans {
		b.lent = append(b.lent, loan.Copy)
	}
	return ctx.Err() == nil
}

// work lends and takes back until the context ends.
func (b *branch) work(ctx context.Context, every time.Duration) {
	if !b.open(ctx) {
		return
	}
	tick := time.NewTicker(branchPace * every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.step(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// step does what a clerk does next. What a rule refuses is left: somebody at the real desk may have been quicker.
func (b *branch) step(ctx context.Context) {
	if mathrand.IntN(4) == 0 && b.collect(ctx) {
		return
	}
	if len(b.lent) > 4 || len(b.lent) > 0 && mathrand.IntN(3) == 0 {
		i := mathrand.IntN(len(b.lent))
		b.post(ctx, "/v1/lending/returns", map[string]string{"copy": b.lent[i]})
		b.lent = slices.Delete(b.lent, i, i+1)
		return
	}
	member, copied := memberNumber(mathrand.IntN(branchMembers)), copyNumber(mathrand.IntN(2*len(works)))
	switch b.post(ctx, "/v1/lending/loans", map[string]string{"member": member, "copy": copied}) {
	case http.StatusOK:
		b.lent = append(b.lent, copied)
	case http.StatusConflict:
		b.post(ctx, "/v1/lending/reservations", map[string]string{"member": member, "work": works[mathrand.IntN(len(works))].id})
	}
}

// collect hands out a copy that is held; false: there is none.
func (b *branch) collect(ctx context.Context) bool {
	var page struct {
		Reservations []struct{ ID, State, Copy string }
	}
	b.get(ctx, "/v1/lending/reservations", &page)
	for _, r := range page.Reservations {
		if r.State == "ready" {
			if b.post(ctx, "/v1/lending/reservations/"+r.ID+"/collect", nil) == http.StatusOK {
				b.lent = append(b.lent, r.Copy)
			}
			return true
		}
	}
	return false
}

// get reads what there is; what cannot be read is as if it were not there.
func (b *branch) get(ctx context.Context, path string, into any) {
	if api := b.depot.client(); api != nil {
		_ = api.Do(ctx, http.MethodGet, path, nil, into)
	}
}

// post sends a command until it is answered, under one key, as the depot does; it returns the status of a refusal, or 200.
func (b *branch) post(ctx context.Context, path string, body any) int {
	key := "demo-" + strings.ToLower(rand.Text())
	for ctx.Err() == nil {
		err := errNoProcess
		if api := b.depot.client(); api != nil {
			err = api.Once(key).Do(ctx, http.MethodPost, path, body, nil)
		}
		problem := new(client.Problem)
		switch {
		case err == nil:
			return http.StatusOK
		case errors.As(err, &problem) && problem.Status != http.StatusServiceUnavailable:
			return problem.Status
		}
		sleep(ctx, 200*time.Millisecond)
	}
	return 0
}
