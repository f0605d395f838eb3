package inbound

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/outbox"
)

// Source is one that may send, as the operator configured it.
type Source struct {
	// Secret is what it signs with: whsec_ and Base64. SecretFile names a file that holds it instead.
	Secret     string `yaml:"secret"`
	SecretFile string `yaml:"secret_file"`
	// Tenant is whose events these are. Defaults to main.
	Tenant string `yaml:"tenant"`
	// Types are the patterns of the event types that it may send. Defaults to every inbound type.
	Types []string `yaml:"types"`
}

var (
	nameForm   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	secretForm = regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{32,}={0,2}$`)
)

// ErrBadSource is what is wrong with a configured source; its text never repeats the secret.
var ErrBadSource = errors.New("bad inbound source")

// Check judges a configured source.
func (s Source) Check(name string) error {
	wrong := func(text string) error { return fmt.Errorf("%w: inbound.%s: %s", ErrBadSource, name, text) }
	switch {
	case !nameForm.MatchString(name):
		return fmt.Errorf("%w: a source's name is a lower-case letter, then letters, digits and hyphens", ErrBadSource)
	case (s.Secret == "") == (s.SecretFile == ""):
		return wrong("set either secret or secret_file")
	case s.Secret != "" && !secretForm.MatchString(s.Secret):
		return wrong("secret must be whsec_ and at least 24 bytes in Base64")
	case s.Tenant != "" && !outbox.ValidID(s.Tenant):
		return wrong("tenant must be 1 to 64 of A-Z a-z 0-9 _ -")
	}
	for _, pattern := range s.Types {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return wrong("types must be patterns such as member-*")
		}
	}
	return nil
}

// maxSecretFile bounds a file that holds one secret.
const maxSecretFile = 64 << 10

// open reads the secret and returns who verifies by it.
func (s Source) open(name string) (*standardwebhooks.Webhook, error) {
	secret := s.Secret
	if s.SecretFile != "" {
		text, err := regular.Read(s.SecretFile, maxSecretFile)
		if err != nil {
			return nil, fmt.Errorf("read secret of inbound source %s: %w", name, err)
		}
		secret = strings.TrimSpace(string(text))
	}
	if !secretForm.MatchString(secret) {
		return nil, fmt.Errorf("%w: inbound.%s: secret must be whsec_ and at least 24 bytes in Base64", ErrBadSource, name)
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, fmt.Errorf("%w: inbound.%s: the secret cannot be used", ErrBadSource, name)
	}
	return verifier, nil
}

func (s Source) tenant() outbox.TenantID {
	if s.Tenant == "" {
		return outbox.MainTenant
	}
	return outbox.TenantID(s.Tenant)
}

func (s Source) allows(eventType string) bool {
	for _, pattern := range s.Types {
		if ok, _ := path.Match(pattern, eventType); ok {
			return true
		}
	}
	return len(s.Types) == 0
}

// signed are the headers of a signed request.
func signed(h http.Header) (id string, ok bool) {
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		if len(h.Values(name)) != 1 {
			return "", false
		}
	}
	id = h.Get("Webhook-Id")
	return id, outbox.ValidID(id)
}
