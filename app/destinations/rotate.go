package destinations

import (
	"context"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/integrations/webhook"
	"github.com/posthorn/posthorn/app/mediator"
)

// MaxOverlap bounds how long a rotated secret goes on signing.
const MaxOverlap = 30 * 24 * time.Hour

type rotate struct {
	name
	overlap time.Duration
}

// Validate bounds the overlap.
func (r rotate) Validate() error {
	var v mediator.Violations
	if r.overlap < 0 || r.overlap > MaxOverlap {
		v.Add("/overlap", "must be 0s to 720h")
	}
	return v.Refusal("invalid-overlap", "The secret cannot be rotated so.", "")
}

// Authorize asks for an admin.
func (rotate) Authorize(by access.Principal) error { return by.Require(access.Admin) }

// RotateSecret gives a webhook a new signing secret, which the answer holds this once. What it was signed by goes on signing beside it for
// the overlap, nil being the setting's, so that the receiver can change over when it likes. No secret ends before its time, unless a shorter
// overlap says so: where webhook.MaxSecrets sign already, it is refused.
func (s *Service) RotateSecret(ctx context.Context, destination string, overlap *time.Duration) (Created, error) {
	if overlap == nil {
		overlap = &s.config.Defaults.SecretOverlap
	}
	secret := webhook.GenerateSecret()
	view, err := s.reshape(ctx, rotate{name(destination), *overlap}, destination, "destination.rotate-secret", func(d *Destination, now time.Time) (string, error) {
		if d.Kind != Webhook {
			return "", unsigned(d.Kind)
		}
		old, err := d.secrets(s.config.Key)
		if err != nil {
			return "", err
		}
		secrets := []webhook.Secret{secret}
		until, next := now.Add(*overlap), time.Time{}
		for _, o := range old {
			if o.NotAfter.After(now) && (next.IsZero() || o.NotAfter.Before(next)) {
				next = o.NotAfter
			}
			if o.NotAfter.IsZero() || o.NotAfter.After(until) {
				o.NotAfter = until
			}
			if o.NotAfter.After(now) {
				secrets = append(secrets, o)
			}
		}
		if len(secrets) > webhook.MaxSecrets {
			return "", tooManySecrets(d.Name, next)
		}
		detail := fmt.Sprintf("the old secret signs for %s more", *overlap)
		return detail, d.seal(s.config.Key, secrets...)
	})
	if err != nil {
		return Created{}, err
	}
	return Created{View: view, Secret: secret.Reveal()}, nil
}
