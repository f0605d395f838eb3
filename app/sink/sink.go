package sink

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Config says how a sink receives. The zero Config accepts everything unverified and prints nothing.
type Config struct {
	// Secrets verify signatures (whsec_…); any of them will do. Without one, nothing is verified and nothing refused.
	Secrets []string
	// Tolerance is how far a signature's time may be from now. Defaults to 5 minutes; negative does not look.
	Tolerance time.Duration
	// Misbehaviour is in force from the start.
	Misbehaviour Misbehaviour
	// Remember is how many messages are remembered to suppress repeats. Defaults to 100,000.
	Remember int
	// MaxBody is the longest request body in bytes; a longer one is answered 413. Defaults to 16 MiB.
	MaxBody int64
	// Journal is a file that gets a JSON line for each delivery. What it holds as handled is remembered.
	Journal string
	// Out gets a line for each delivery. Defaults to nowhere.
	Out io.Writer
	// JSON makes the lines of Out JSON, like the journal's.
	JSON bool
	// Observe is called for each delivery, before it is answered.
	Observe func(Entry)
	// Seed chooses which requests a rate hits. Defaults to a random one.
	Seed uint64
	// Now defaults to time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Tolerance == 0 {
		c.Tolerance = 5 * time.Minute
	}
	if c.Remember <= 0 {
		c.Remember = 100_000
	}
	if c.MaxBody <= 0 {
		c.MaxBody = 16 << 20
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Observe == nil {
		c.Observe = func(Entry) {}
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Sink is the receiver, an http.Handler. Close it when its server has stopped.
type Sink struct {
	config  Config
	journal *journal // nil without one
	control http.Handler

	mu           sync.Mutex
	secrets      []*standardwebhooks.Webhook
	misbehaviour Misbehaviour
	left         int // how often it still applies, when it is counted
	random       *rand.Rand
	memory       *memory
	stats        Stats

	out sync.Mutex
}

// New returns a sink, having read its journal.
func New(config Config) (*Sink, error) {
	config = config.withDefaults()
	s := &Sink{config: config, memory: newMemory(config.Remember), random: rand.New(rand.NewPCG(config.Seed, 0))}
	s.stats.Statuses = map[string]int64{}
	s.control = s.controlHandler()
	if err := s.SetSecrets(config.Secrets...); err != nil {
		return nil, err
	}
	if err := s.Misbehave(config.Misbehaviour); err != nil {
		return nil, err
	}
	if config.Journal != "" {
		opened, err := openJournal(config.Journal, s.recall)
		if err != nil {
			return nil, err
		}
		s.journal = opened
	}
	return s, nil
}

// recall remembers what an earlier run handled.
func (s *Sink) recall(entry Entry) {
	if entry.Problem != "" || entry.ID == "" {
		return
	}
	_, about := s.memory.meet(entry)
	// A repeat was handled by a request whose own entry a kill may have kept out of the journal.
	about.handled = about.handled || entry.Handled || entry.Repeated
}

// Close closes the journal.
func (s *Sink) Close() error { return s.journal.close() }

// SetSecrets replaces the secrets, as after a rotation or once a destination's is known.
func (s *Sink) SetSecrets(secrets ...string) error {
	verifiers := make([]*standardwebhooks.Webhook, 0, len(secrets))
	for _, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil || !strings.HasPrefix(secret, "whsec_") || len(secret) < len("whsec_")+32 {
			// The library's error would repeat part of the secret.
			return errors.New("read sink secret: it is not whsec_ and the base64 of at least 24 bytes")
		}
		verifiers = append(verifiers, verifier)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = verifiers
	return nil
}

// Misbehave replaces the misbehaviour in force; the zero Misbehaviour behaves again.
func (s *Sink) Misbehave(m Misbehaviour) error {
	if err := m.validate(); err != nil {
		return fmt.Errorf("set misbehaviour: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misbehaviour, s.left = m, m.Times
	return nil
}

// ServeHTTP takes a delivery, or a request to /_sink/.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isControl(r.URL.Path) {
		s.control.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "deliveries come by POST", http.StatusMethodNotAllowed)
		return
	}
	s.receive(w, r)
}
