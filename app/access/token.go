package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

const (
	textPrefix = "ph_"
	textBytes  = 32
	// MaxTokens is how many tokens a tenant may have in force.
	MaxTokens = 1000
)

// Token is what is known of an API token; its text is not.
type Token struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Tenant    outbox.TenantID `json:"tenant"`
	Role      Role            `json:"role"`
	CreatedAt time.Time       `json:"created_at"`
	CreatedBy string          `json:"created_by"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	RevokedAt *time.Time      `json:"revoked_at,omitempty"`
}

// InForce says whether the token is accepted at a time.
func (t Token) InForce(at time.Time) bool {
	return t.RevokedAt == nil && (t.ExpiresAt == nil || at.Before(*t.ExpiresAt))
}

func (t Token) principal() Principal {
	p := Principal{Actor: "token:" + t.Name, Tenant: t.Tenant, Role: t.Role, TokenID: t.ID}
	if t.ExpiresAt != nil {
		p.ExpiresAt = *t.ExpiresAt
	}
	return p
}

// NewToken is what a token is asked for with.
type NewToken struct {
	// Name is how audit rows name whoever uses the token; unique among the tenant's tokens in force. One is made up when it is empty.
	Name string
	Role Role
	// Tenant defaults to the creator's; only the machine's own user may name another.
	Tenant outbox.TenantID
	// ExpiresAt, unless zero, is when the token stops being accepted.
	ExpiresAt time.Time
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// filled judges what can be judged without the store, and fills the defaults.
func (n NewToken) filled(by Principal, id string) (NewToken, error) {
	if n.Tenant == "" {
		n.Tenant = by.Tenant
	}
	if n.Name == "" {
		n.Name = string(n.Role) + "-" + strings.TrimPrefix(id, idPrefix)[:8]
	}
	switch {
	case n.Role.rank() == 0:
		return n, fmt.Errorf("%w: role must be viewer, operator or admin", ErrInvalidToken)
	case !tokenName.MatchString(n.Name):
		return n, fmt.Errorf("%w: name must be 1 to 63 of A-Z a-z 0-9 . _ @ -, a letter or digit first", ErrInvalidToken)
	case !outbox.ValidID(string(n.Tenant)):
		return n, fmt.Errorf("%w: tenant must be 1 to 64 of A-Z a-z 0-9 _ -", ErrInvalidToken)
	case n.Tenant != by.Tenant && !by.Local():
		return n, fmt.Errorf("%w: only the machine's own user makes tokens for another tenant", ErrForbidden)
	}
	return n, nil
}

const idPrefix = "tok_"

func newID() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b) // never fails: the runtime aborts first
	return idPrefix + hex.EncodeToString(b)
}

// newText makes a token's text and its hash.
func newText() (text string, hash [sha256.Size]byte) {
	b := make([]byte, textBytes)
	_, _ = rand.Read(b)
	text = textPrefix + base64.RawURLEncoding.EncodeToString(b)
	return text, sha256.Sum256([]byte(text))
}

// hashText hashes what a caller showed; false when it cannot be a token, so that nothing else is ever looked up.
func hashText(text string) (hash [sha256.Size]byte, ok bool) {
	encoded, ok := strings.CutPrefix(text, textPrefix)
	if !ok || len(encoded) != base64.RawURLEncoding.EncodedLen(textBytes) {
		return hash, false
	}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(encoded); err != nil {
		return hash, false
	}
	return sha256.Sum256([]byte(text)), true
}
