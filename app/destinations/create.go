package destinations

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/integrations/file"
	"github.com/posthorn/posthorn/app/integrations/webhook"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// NewDestination is what a destination is created from.
type NewDestination struct {
	Name string
	Kind Kind
	// URL is a webhook's target.
	URL string
	// Path is a file's: in a folder that the configuration allows, or relative to the first of them.
	Path  string
	Types []string
	// Concurrency and Timeout default to the settings', Order to block. Timeout is such as "15s".
	Concurrency int
	// Rate is attempts a second at the most; 0 is the setting's.
	Rate    float64
	Timeout string
	Order   Order
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

type create struct {
	NewDestination
	service *Service
	tenant  outbox.TenantID
}

// Validate judges everything that needs no store, all at once.
func (c create) Validate() error {
	var v mediator.Violations
	if !nameForm.MatchString(c.Name) {
		v.Add("/name", "must be 1 to 63 of a-z 0-9 -, a letter first")
	} else if c.Name == string(outbox.Unrouted) {
		v.Add("/name", "is reserved")
	}
	var refused error
	switch c.Kind {
	case Webhook:
		sentence := ""
		if sentence, refused = judgeURL(c.service.config.Egress, c.URL); sentence != "" {
			v.Add("/url", sentence)
		}
	case Pull:
	case File:
		if err := file.CheckPath(c.service.fileOf(c.Path, c.tenant)); err != nil {
			v.Add("/path", strings.TrimPrefix(err.Error(), file.ErrInvalidPath.Error()+": "))
		}
	default:
		v.Add("/kind", "must be webhook, file or pull")
	}
	if c.URL != "" && c.Kind != Webhook {
		v.Add("/url", "belongs to the kind webhook")
	}
	if c.Path != "" && c.Kind != File {
		v.Add("/path", "belongs to the kind file")
	}
	if len(c.Types) < 1 || len(c.Types) > MaxTypes {
		v.Add("/types", fmt.Sprintf("must be 1 to %d patterns, such as order-*", MaxTypes))
	}
	for i, pattern := range c.Types[:min(len(c.Types), MaxTypes)] {
		if sentence := judgePattern(pattern); sentence != "" {
			v.Add(fmt.Sprintf("/types/%d", i), sentence)
		}
	}
	if c.Concurrency < 0 || c.Concurrency > MaxConcurrency {
		v.Add("/concurrency", fmt.Sprintf("must be 1 to %d", MaxConcurrency))
	}
	if !(c.Rate >= 0 && c.Rate <= MaxRate) {
		v.Add("/rate", fmt.Sprintf("must be 0 to %d attempts a second", MaxRate))
	}
	if c.Timeout != "" {
		if timeout, err := time.ParseDuration(c.Timeout); err != nil || timeout < MinTimeout || timeout > MaxTimeout {
			v.Add("/timeout", "must be 1s to 5m")
		}
	}
	if c.Order != "" && c.Order != Block && c.Order != Skip {
		v.Add("/order", "must be block or skip")
	}
	if err := v.Refusal("invalid-destination", "A destination cannot be like this.", ""); err != nil {
		return err
	}
	return refused
}

// fileOf is where a file destination writes. Tenants other than main have a folder of their own in each that is allowed.
func (s *Service) fileOf(path string, tenant outbox.TenantID) file.Config {
	config := file.Config{Path: path, Allow: s.config.Files}
	if tenant != outbox.MainTenant {
		config.Below = string(tenant)
	}
	return config
}

// Authorize asks for an admin.
func (create) Authorize(by access.Principal) error { return by.Require(access.Admin) }

// Create makes a destination and its lane. What is staged from then on reaches it.
func (s *Service) Create(ctx context.Context, n NewDestination) (Created, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	var secret webhook.Secret
	if n.Kind == Webhook {
		secret = webhook.GenerateSecret()
	}
	by, _ := access.From(ctx) // who there is not is refused by Authorize
	destination, err := mediator.Send(ctx, s.config.Mediator, create{n, s, by.Tenant}, func(ctx context.Context, work *mediator.UnitOfWork, c create) (Destination, error) {
		d := Destination{Name: c.Name, Tenant: work.By.Tenant, Kind: c.Kind, Types: c.Types, CreatedAt: work.Now, CreatedBy: work.By.Actor,
			Options: Options{URL: c.URL, Path: c.Path, Concurrency: c.Concurrency, Rate: c.Rate, Timeout: c.Timeout, Order: c.Order}}
		if c.Kind == Webhook {
			if err := d.seal(s.config.Key, secret); err != nil {
				return d, err
			}
		}
		if err := insert(ctx, work.Tx, d); err != nil {
			return d, err
		}
		return d, access.Audit(ctx, work.Tx, work.By, "destination.create", d.Name, d.describe())
	})
	if err != nil {
		return Created{}, err
	}
	s.flow(context.WithoutCancel(ctx), destination)
	s.config.Observe(destination.Tenant, destination.Name, "created")
	created := Created{View: destination.view(by, s.config.Defaults)}
	if n.Kind == Webhook {
		created.Secret = secret.Reveal()
	}
	return created, nil
}

// describe is what the audit says: enough to recognize the target, nothing secret.
func (d Destination) describe() string {
	target := d.Options.Path
	switch d.Kind {
	case Webhook:
		target = hostOf(d.Options.URL)
	case Pull:
		target = "whoever asks"
	case File:
	}
	return fmt.Sprintf("%s to %s, types %s", d.Kind, target, strings.Join(d.Types, " "))
}
