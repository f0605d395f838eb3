package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/access"
)

// LinkLife is how long a setup link can be used.
const LinkLife = 15 * time.Minute

// maxLinks bounds the links that wait to be used; the oldest goes first.
const maxLinks = 64

// Links are one-time invitations, kept in memory: a restart voids them.
type Links struct {
	now func() time.Time

	mu    sync.Mutex
	order [][sha256.Size]byte
	open  map[[sha256.Size]byte]invitation
}

type invitation struct {
	as      access.Principal
	expires time.Time
}

// NewLinks returns an empty set.
func NewLinks() *Links {
	return &Links{now: time.Now, open: map[[sha256.Size]byte]invitation{}}
}

// New returns the text of a link that signs its first user in as p.
func (l *Links) New(p access.Principal) (text string, expires time.Time) {
	text, hash := secret()
	expires = l.now().Add(LinkLife)
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.order) >= maxLinks {
		delete(l.open, l.order[0])
		l.order = l.order[1:]
	}
	l.order = append(l.order, hash)
	l.open[hash] = invitation{as: p, expires: expires}
	return text, expires
}

// use redeems a link. A second use, and one that is too late, are answered alike.
func (l *Links) use(text string) (access.Principal, bool) {
	hash := sha256.Sum256([]byte(text))
	l.mu.Lock()
	defer l.mu.Unlock()
	i, ok := l.open[hash]
	delete(l.open, hash)
	if !ok || !l.now().Before(i.expires) {
		return access.Principal{}, false
	}
	return i.as, true
}

// secret draws 256 bits and returns their text and its hash.
func secret() (string, [sha256.Size]byte) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: the runtime aborts first
	text := base64.RawURLEncoding.EncodeToString(raw[:])
	return text, sha256.Sum256([]byte(text))
}
