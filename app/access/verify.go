package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

const tokenByHash = `SELECT ` + tokenColumns + `, hash FROM posthorn_tokens WHERE hash = ?`

// Verify says whom a token's text stands for. Its error is ErrUnauthenticated when it stands for nobody, and another when the store
// could not be asked.
func (t *Tokens) Verify(ctx context.Context, text string) (Principal, error) {
	hash, ok := hashText(text)
	if !ok {
		return Principal{}, ErrUnauthenticated
	}
	now := t.now()
	token, known, generation := t.verified.get(hash, now)
	if !known {
		var stored []byte
		var err error
		token, err = scanToken(t.read.DB.QueryRowContext(ctx, tokenByHash, hash[:]).Scan, &stored)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return Principal{}, ErrUnauthenticated
		case err != nil:
			return Principal{}, fmt.Errorf("verify API token: %w", err)
		case subtle.ConstantTimeCompare(stored, hash[:]) != 1:
			return Principal{}, ErrUnauthenticated
		}
	}
	if !token.InForce(now) {
		return Principal{}, ErrUnauthenticated
	}
	if !known {
		t.verified.put(hash, remembered{token, now}, generation)
	}
	return token.principal(), nil
}

// maxVerified bounds the tokens in memory. Beyond it they are all forgotten, which costs each one query.
const maxVerified = 4096

// rememberedFor bounds how long a token is believed without a look at the store. What this process changes is forgotten at once; this is for a
// store that somebody else has changed.
const rememberedFor = time.Minute

// verified remembers the tokens that were in force when they were looked up. The zero value is empty.
type verified struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]remembered
	// generation counts the revocations: what was read before one must not be remembered after it.
	generation uint64
	hooks      []func(tokenID string)
}

type remembered struct {
	Token
	looked time.Time
}

func (v *verified) onRevoke(fn func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hooks = append(v.hooks[:len(v.hooks):len(v.hooks)], fn)
}

func (v *verified) get(hash [sha256.Size]byte, now time.Time) (token Token, known bool, generation uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, known := v.tokens[hash]
	return r.Token, known && now.Sub(r.looked) < rememberedFor, v.generation
}

func (v *verified) put(hash [sha256.Size]byte, token remembered, generation uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.generation != generation {
		return
	}
	if v.tokens == nil || len(v.tokens) >= maxVerified {
		v.tokens = map[[sha256.Size]byte]remembered{}
	}
	v.tokens[hash] = token
}

func (v *verified) revoked(tokenID string) {
	for _, fn := range v.forget() {
		fn(tokenID)
	}
}

func (v *verified) forget() (hooks []func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tokens, v.generation = nil, v.generation+1
	return v.hooks
}

const tokenByID = `SELECT ` + tokenColumns + `, hash FROM posthorn_tokens WHERE id = ?`

// Valid asks the store whom a token stands for by now; ErrUnauthenticated when it is no longer in force. Where Verify would still say otherwise, it
// asks again, too.
func (t *Tokens) Valid(ctx context.Context, tokenID string) (Principal, error) {
	var stored []byte
	token, err := scanToken(t.read.DB.QueryRowContext(ctx, tokenByID, tokenID).Scan, &stored)
	switch now := t.now(); {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return Principal{}, fmt.Errorf("look up API token: %w", err)
	case err != nil || !token.InForce(now):
		t.verified.forget()
		return Principal{}, ErrUnauthenticated
	default:
		believed, known, _ := t.verified.get([sha256.Size]byte(stored), now)
		if known && believed.principal() != token.principal() {
			t.verified.forget()
		}
	}
	return token.principal(), nil
}
