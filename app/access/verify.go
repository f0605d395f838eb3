package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

const tokenByHash = `SELECT ` + tokenColumns + `, hash FROM posthorn_tokens WHERE hash = ?`

// Verify says whom a token's text stands for. Its error is ErrUnauthenticated when it stands for nobody, and another when the store
// could not be asked.
func (t *Tokens) Verify(ctx context.Context, text string) (Principal, error) {
	hash, ok := hashText(text)
	if !ok {
		return Principal{}, ErrUnauthenticated
	}
	token, known, generation := t.verified.get(hash)
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
	if !token.InForce(t.now()) {
		return Principal{}, ErrUnauthenticated
	}
	if !known {
		t.verified.put(hash, token, generation)
	}
	return token.principal(), nil
}

// maxVerified bounds the tokens in memory. Beyond it they are all forgotten, which costs each one query.
const maxVerified = 4096

// verified remembers the tokens that were in force when they were looked up. The zero value is empty.
type verified struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]Token
	// generation counts the revocations: what was read before one must not be remembered after it.
	generation uint64
	hooks      []func(tokenID string)
}

func (v *verified) onRevoke(fn func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hooks = append(v.hooks[:len(v.hooks):len(v.hooks)], fn)
}

func (v *verified) get(hash [sha256.Size]byte) (token Token, known bool, generation uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	token, known = v.tokens[hash]
	return token, known, v.generation
}

func (v *verified) put(hash [sha256.Size]byte, token Token, generation uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.generation != generation {
		return
	}
	if v.tokens == nil || len(v.tokens) >= maxVerified {
		v.tokens = map[[sha256.Size]byte]Token{}
	}
	v.tokens[hash] = token
}

func (v *verified) forget(tokenID string) {
	v.mu.Lock()
	v.tokens, v.generation = nil, v.generation+1
	hooks := v.hooks
	v.mu.Unlock()
	for _, fn := range hooks {
		fn(tokenID)
	}
}

const tokenByID = `SELECT ` + tokenColumns + ` FROM posthorn_tokens WHERE id = ?`

// Valid says whom a token stands for by now; ErrUnauthenticated when it is no longer in force.
func (t *Tokens) Valid(ctx context.Context, tokenID string) (Principal, error) {
	token, err := scanToken(t.read.DB.QueryRowContext(ctx, tokenByID, tokenID).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Principal{}, ErrUnauthenticated
	case err != nil:
		return Principal{}, fmt.Errorf("look up API token: %w", err)
	case !token.InForce(t.now()):
		return Principal{}, ErrUnauthenticated
	}
	return token.principal(), nil
}
