package destinations

import (
	"context"
	"strings"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

// Change is what a destination gets anew; what is nil stays. Its name and kind cannot be changed.
type Change struct {
	URL, Path   *string
	Types       []string
	Concurrency *int
	Rate        *float64
	Timeout     *string
	Order       *Order
}

type alter struct {
	name
	change Change
}

// Validate wants something to change. The rest is judged as for a new destination, once it is known what the change is made to.
func (a alter) Validate() error {
	var v mediator.Violations
	if len(a.change.named()) == 0 {
		v.Add("", "names nothing to change")
	}
	return v.Refusal("invalid-destination", "This changes nothing.", "Name at least one of url, path, types, concurrency, rate, timeout and order.")
}

// Authorize asks for an admin.
func (alter) Authorize(by access.Principal) error { return by.Require(access.Admin) }

// Alter changes where and how a destination delivers, for what is pending too. Changed types hold for what is staged from then on.
func (s *Service) Alter(ctx context.Context, destination string, change Change) (View, error) {
	return s.reshape(ctx, alter{name(destination), change}, destination, "destination.change", func(d *Destination, _ time.Time) (string, error) {
		if err := (create{change.on(*d), s, d.Tenant}).Validate(); err != nil {
			return "", err
		}
		changed := change.on(*d)
		d.Types = changed.Types
		d.Options = Options{URL: changed.URL, Path: changed.Path, Concurrency: changed.Concurrency, Rate: changed.Rate, Timeout: changed.Timeout, Order: changed.Order}
		return strings.Join(change.named(), ", ") + "; now " + d.describe(), nil
	})
}

// named lists what the change is of.
func (c Change) named() (fields []string) {
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"url", c.URL != nil}, {"path", c.Path != nil}, {"types", c.Types != nil}, {"concurrency", c.Concurrency != nil}, {"rate", c.Rate != nil},
		{"timeout", c.Timeout != nil}, {"order", c.Order != nil},
	} {
		if field.given {
			fields = append(fields, field.name)
		}
	}
	return fields
}

// on is a destination as it would be created with the change.
func (c Change) on(d Destination) NewDestination {
	n := NewDestination{Name: d.Name, Kind: d.Kind, Types: d.Types, URL: d.Options.URL, Path: d.Options.Path, Concurrency: d.Options.Concurrency,
		Rate: d.Options.Rate, Timeout: d.Options.Timeout, Order: d.Options.Order}
	set(&n.URL, c.URL)
	set(&n.Path, c.Path)
	set(&n.Concurrency, c.Concurrency)
	set(&n.Rate, c.Rate)
	set(&n.Timeout, c.Timeout)
	set(&n.Order, c.Order)
	if c.Types != nil {
		n.Types = c.Types
	}
	return n
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// reshape stores what change makes of a destination, its routes and an audit row in one transaction, and then brings its lane up anew.
// Attempts that run finish as they were begun.
func (s *Service) reshape(ctx context.Context, c mediator.Command, destination, action string, change func(d *Destination, now time.Time) (detail string, err error)) (View, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	changed, err := mediator.Send(ctx, s.config.Mediator, c, func(ctx context.Context, work *mediator.UnitOfWork, _ mediator.Command) (Destination, error) {
		d, err := find(ctx, work.Tx.Tx.Tx, work.By.Tenant, destination)
		if err != nil {
			return d, err
		}
		detail, err := change(&d, work.Now)
		if err != nil {
			return d, err
		}
		if err := update(ctx, work.Tx, d); err != nil {
			return d, err
		}
		return d, access.Audit(ctx, work.Tx, work.By, action, d.Name, detail)
	})
	if err != nil {
		return View{}, err
	}
	s.flow(context.WithoutCancel(ctx), changed)
	s.config.Observe(changed.Tenant, changed.Name, strings.TrimPrefix(action, "destination."))
	return s.Get(ctx, destination)
}
