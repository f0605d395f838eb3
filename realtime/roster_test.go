package realtime

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes and goes, the roster finds for each grant what looking at every connection finds.
func TestRosterEqualsAScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRoster()
		var live []*conn
		few := func(what string, n int) string {
			i := rapid.IntRange(0, n).Draw(t, what)
			if i == 0 {
				return ""
			}
			return fmt.Sprint(what, i)
		}
		came := 0
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				came++
				c := &conn{Subscriber: Subscriber{ID: fmt.Sprint("connection", came), Principal: Principal{
					User: fmt.Sprint("user", rapid.IntRange(1, 3).Draw(t, "user")), Tenant: few("tenant", 2), Session: few("session", 4), APIToken: few("token", 3), Address: few("address", 2),
				}}}
				live = append(live, c)
				r.add(c)
			},
			"go": func(t *rapid.T) {
				if len(live) == 0 {
					return // nobody is there
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "who")
				r.remove(live[i])
				live = slices.Delete(live, i, i+1)
			},
			"": func(t *rapid.T) {
				g := Grant{User: few("user", 4), Tenant: few("tenant", 3), Session: few("session", 5), APIToken: few("token", 4)}
				if rapid.Bool().Draw(t, "one") {
					g.Connection = few("connection", came+1)
				}
				if r.size != len(live) || len(r.all()) != len(live) {
					t.Fatalf("%d are listed, %d counted, %d there", len(r.all()), r.size, len(live))
				}
				var want []*conn
				for _, c := range live {
					if g.covers(&c.Subscriber) {
						want = append(want, c)
					}
				}
				got := r.find(g)
				if len(got) != len(want) || slices.ContainsFunc(want, func(c *conn) bool { return !slices.Contains(got, c) }) {
					t.Fatalf("%+v finds %d connections, a scan %d", g, len(got), len(want))
				}
				counts := [aspects]map[string]int{}
				for a := range counts {
					counts[a] = map[string]int{}
					for _, c := range live {
						if name := names(&c.Principal)[a]; name != "" {
							counts[a][name]++
						}
					}
					if len(counts[a]) != len(r.by[a]) {
						t.Fatalf("aspect %d has %d names, want %d", a, len(r.by[a]), len(counts[a]))
					}
					for name, n := range counts[a] {
						if r.count(aspect(a), name) != n {
							t.Fatalf("%d stand under %q, want %d", r.count(aspect(a), name), name, n)
						}
					}
				}
			},
		})
	})
}

func TestGrantCovers(t *testing.T) {
	t.Parallel()
	s := &Subscriber{ID: "c", Principal: Principal{User: "u", Tenant: "t", Session: "s", Address: "a"}}
	tests := []struct {
		grant Grant
		want  bool
	}{
		{Grant{}, false},
		{Grant{Connection: "c"}, true},
		{Grant{Session: "s"}, true},
		{Grant{User: "u"}, true},
		{Grant{Tenant: "t"}, true},
		{Grant{Connection: "c", Session: "s", User: "u", Tenant: "t"}, true},
		{Grant{APIToken: "k"}, false}, // the connection rests on none
		{Grant{Tenant: "other", Connection: "c"}, false},
		{Grant{Tenant: "t", User: "other"}, false},
	}
	for _, tt := range tests {
		if got := tt.grant.covers(s); got != tt.want {
			t.Errorf("%+v covers: %t", tt.grant, got)
		}
	}
}
