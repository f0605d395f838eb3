package destinations

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/integrations/webhook"
)

// storedSecret is a signing secret inside the seal.
type storedSecret struct {
	Secret   string     `json:"secret"`
	NotAfter *time.Time `json:"not_after,omitempty"`
}

func (d Destination) owner() string {
	return "destination/" + string(d.Tenant) + "/" + d.Name
}

// seal puts signing secrets into the destination.
func (d *Destination) seal(key *Key, secrets ...webhook.Secret) error {
	stored := make([]storedSecret, len(secrets))
	for i, s := range secrets {
		stored[i].Secret = s.Reveal()
		if !s.NotAfter.IsZero() {
			stored[i].NotAfter = &s.NotAfter
		}
	}
	plain, err := json.Marshal(stored)
	if err != nil {
		return fmt.Errorf("seal secrets of %s: %w", d.Name, err)
	}
	d.Sealed = key.Seal(plain, d.owner())
	return nil
}

// secrets opens the destination's signing secrets.
func (d Destination) secrets(key *Key) ([]webhook.Secret, error) {
	plain, err := key.Open(d.Sealed, d.owner())
	if err != nil {
		return nil, fmt.Errorf("open its signing secrets: %w; restore the posthorn.key that belongs to this database", err)
	}
	var stored []storedSecret
	if err := json.Unmarshal(plain, &stored); err != nil {
		return nil, fmt.Errorf("read its signing secrets: %w", ErrSealBroken)
	}
	secrets := make([]webhook.Secret, len(stored))
	for i, s := range stored {
		secret, err := webhook.ParseSecret(s.Secret)
		if err != nil {
			return nil, fmt.Errorf("read its signing secrets: %w", err)
		}
		if s.NotAfter != nil {
			secret.NotAfter = *s.NotAfter
		}
		secrets[i] = secret
	}
	return secrets, nil
}
