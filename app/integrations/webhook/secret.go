package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The bounds of a secret's key, as Standard Webhooks set them, in bytes.
const (
	minKey = 24
	maxKey = 64
	newKey = 32
)

const secretPrefix = "whsec_"

// ErrInvalidSecret is what ParseSecret's errors are; none repeats the secret.
var ErrInvalidSecret = errors.New("invalid webhook secret")

// Secret is a signing key. It prints as whsec_… only, in every format, and logs so.
type Secret struct {
	key []byte
	// NotAfter is when a rotated secret stops signing. Zero: it does not.
	NotAfter time.Time
}

// GenerateSecret returns a new secret of 256 bits.
func GenerateSecret() Secret {
	key := make([]byte, newKey)
	_, _ = rand.Read(key) // never fails: the runtime aborts first
	return Secret{key: key}
}

// ParseSecret reads whsec_ and the padded base64 of 24 to 64 bytes.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return Secret{}, fmt.Errorf("%w: it does not start with %s", ErrInvalidSecret, secretPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, fmt.Errorf("%w: what follows %s is not padded base64", ErrInvalidSecret, secretPrefix)
	}
	if len(key) < minKey || len(key) > maxKey {
		return Secret{}, fmt.Errorf("%w: it holds %d bytes, not %d to %d", ErrInvalidSecret, len(key), minKey, maxKey)
	}
	return Secret{key: key}, nil
}

// Reveal returns the secret as its target needs it. Show it once.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

// Format writes whsec_… for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(secretPrefix + "…")) }

// LogValue logs whsec_….
func (s Secret) LogValue() slog.Value { return slog.StringValue(secretPrefix + "…") }

func (s Secret) inForce(now time.Time) bool { return s.NotAfter.IsZero() || now.Before(s.NotAfter) }

// signer signs with one secret.
type signer struct {
	secret  Secret
	webhook *standardwebhooks.Webhook
}

func signers(secrets []Secret) ([]signer, error) {
	list := make([]signer, len(secrets))
	for i, secret := range secrets {
		webhook, err := standardwebhooks.NewWebhookRaw(secret.key)
		if err != nil {
			return nil, fmt.Errorf("use secret: %w", err)
		}
		list[i] = signer{secret: secret, webhook: webhook}
	}
	return list, nil
}

// sign returns the webhook-signature header: a signature for each secret in force, separated by spaces.
func sign(list []signer, id string, now time.Time, body []byte) (string, error) {
	var signatures []string
	for _, s := range list {
		if !s.secret.inForce(now) {
			continue
		}
		signature, err := s.webhook.Sign(id, now, body)
		if err != nil {
			return "", fmt.Errorf("sign: %w", err)
		}
		signatures = append(signatures, signature)
	}
	if len(signatures) == 0 {
		return "", errors.New("sign: no signing secret is in force")
	}
	return strings.Join(signatures, " "), nil
}
