package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
)

// The bounds of a registration.
const (
	MinTimeout     = time.Second
	MaxTimeout     = 5 * time.Minute
	MaxConcurrency = 256
	MaxSecrets     = 8
)

// ErrInvalidConfig is what Validate's errors are, by errors.Is, unless they are egress's about the URL.
var ErrInvalidConfig = errors.New("invalid webhook destination")

// Config is a registration of one target.
type Config struct {
	// URL is where deliveries are posted.
	URL string
	// Secrets sign every delivery, all that are in force; put the newest first. One must have no end.
	Secrets []Secret
	// Timeout is the total deadline of an attempt, from 1 s to 5 min. Defaults to 15 s.
	Timeout time.Duration
	// Concurrency is how many attempts the lane runs at once, from 1 to 256: so many connections are kept. Defaults to 16.
	Concurrency int
	// RetryAfterCap bounds what a target may ask for. Defaults to 24 h.
	RetryAfterCap time.Duration
	// Version is Posthorn's, for the User-Agent. Defaults to "dev".
	Version string
	// Egress is which addresses may be dialled.
	Egress egress.Policy

	// Resolver defaults to the system's.
	Resolver *net.Resolver
	// RootCAs defaults to the system's.
	RootCAs *x509.CertPool
	// Now defaults to time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 15 * time.Second
	}
	if c.Concurrency == 0 {
		c.Concurrency = 16
	}
	if c.RetryAfterCap == 0 {
		c.RetryAfterCap = 24 * time.Hour
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate says what is wrong with a registration, defaults filled in. New validates too.
func (c Config) Validate() error {
	c = c.withDefaults()
	if err := c.Egress.CheckURL(c.URL); err != nil {
		return err
	}
	invalid := func(sentence string, values ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidConfig, fmt.Sprintf(sentence, values...))
	}
	switch {
	case c.Timeout < MinTimeout || c.Timeout > MaxTimeout:
		return invalid("timeout is not from %s to %s", MinTimeout, MaxTimeout)
	case c.Concurrency < 1 || c.Concurrency > MaxConcurrency:
		return invalid("concurrency is not from 1 to %d", MaxConcurrency)
	case c.RetryAfterCap < 0:
		return invalid("the Retry-After cap is negative")
	case len(c.Secrets) == 0 || len(c.Secrets) > MaxSecrets:
		return invalid("it has %d signing secrets, not 1 to %d", len(c.Secrets), MaxSecrets)
	}
	endless := false
	for _, secret := range c.Secrets {
		if len(secret.key) < minKey || len(secret.key) > maxKey {
			return invalid("a signing secret is empty or of the wrong length")
		}
		endless = endless || secret.NotAfter.IsZero()
	}
	if !endless {
		return invalid("every signing secret has an end")
	}
	return nil
}
