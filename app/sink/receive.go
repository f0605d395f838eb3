package sink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// receive takes one delivery: verify, handle or suppress, note it, answer.
func (s *Sink) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	entry := s.describe(r, body)
	if err != nil {
		entry.Problem, entry.Status = "the body broke off", http.StatusBadRequest
		if tooLong := new(http.MaxBytesError); errors.As(err, &tooLong) {
			entry.Problem, entry.Status = fmt.Sprintf("the body is longer than %d bytes", tooLong.Limit), http.StatusRequestEntityTooLarge
		}
	} else if entry.Verified, entry.Problem = s.verify(r.Header, body); entry.Problem != "" {
		entry.Status = http.StatusUnauthorized
	}
	var m Misbehaviour
	if entry.Problem == "" {
		m = s.handle(&entry)
		wait(r.Context(), m.Delay)
	}
	if err := s.note(entry); err != nil {
		// Nothing is acknowledged that the journal does not have.
		s.forget(entry)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.answer(w, r, entry, m)
}

// describe reads what a request says of itself.
func (s *Sink) describe(r *http.Request, body []byte) Entry {
	sum := sha256.Sum256(body)
	version, _ := strconv.Atoi(r.Header.Get("posthorn-schema-version"))
	attempt, _ := strconv.Atoi(r.Header.Get("posthorn-attempt"))
	fence, _ := strconv.ParseInt(r.Header.Get("posthorn-fence"), 10, 64)
	return Entry{
		Time: s.config.Now().UTC(), Path: r.URL.Path, ID: r.Header.Get("webhook-id"), Type: r.Header.Get("posthorn-type"), SchemaVersion: version,
		Attempt: attempt, Fence: fence, Bytes: len(body), SHA256: hex.EncodeToString(sum[:]),
	}
}

// verify checks the signature and its time. Without secrets nothing is verified and nothing is wrong.
func (s *Sink) verify(header http.Header, body []byte) (verified bool, problem string) {
	s.mu.Lock()
	secrets := s.secrets
	s.mu.Unlock()
	if len(secrets) == 0 {
		return false, ""
	}
	signed, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || header.Get("webhook-id") == "" || header.Get("webhook-signature") == "" {
		return false, "it has no webhook-id, webhook-timestamp and webhook-signature"
	}
	// The library's own tolerance is fixed and reads the machine's clock.
	if age := s.config.Now().Sub(time.Unix(signed, 0)); s.config.Tolerance >= 0 && age.Abs() > s.config.Tolerance {
		return false, fmt.Sprintf("it was signed more than %s from now", s.config.Tolerance)
	}
	for _, secret := range secrets {
		if secret.VerifyIgnoringTimestamp(body, header) == nil {
			return true, ""
		}
	}
	return false, "no signature matches"
}

// handle decides what happens to a request: whether its message is handled now, and how it is answered.
func (s *Sink) handle(entry *Entry) Misbehaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	var before known
	about := new(known)
	if entry.ID != "" {
		before, about = s.memory.meet(*entry)
		entry.Changed = before.sha256 != entry.SHA256
		entry.Stale = entry.Fence < before.fence
	}
	m := s.pick()
	if before.handled && m.Duplicates {
		m = Misbehaviour{}
	}
	entry.Misbehaviour = m.String()
	entry.Repeated = before.handled
	entry.Status = statusOf(m)
	entry.Handled = !before.handled && (m.Duplicates || entry.Status >= 200 && entry.Status < 300)
	about.handled = about.handled || entry.Handled
	return m
}

// pick says which misbehaviour hits this request.
func (s *Sink) pick() Misbehaviour {
	m := s.misbehaviour
	if m.behaves() || m.Rate > 0 && s.random.Float64() >= m.Rate {
		return Misbehaviour{}
	}
	if m.Times > 0 {
		if s.left--; s.left <= 0 {
			s.misbehaviour = Misbehaviour{}
		}
	}
	return m
}

func statusOf(m Misbehaviour) int {
	switch {
	case m.Reset == ResetBefore:
		return 0
	case m.Status != 0:
		return m.Status
	case m.Duplicates:
		return http.StatusInternalServerError
	default:
		return http.StatusOK
	}
}

// forget undoes handle: the message counts as not handled.
func (s *Sink) forget(entry Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if about := s.memory.known[key{entry.Path, entry.ID}]; about != nil && entry.Handled {
		about.handled = false
	}
}

// note journals, counts, shows and prints an entry.
func (s *Sink) note(entry Entry) error {
	if s.journal != nil {
		if err := s.journal.append(entry); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.stats.count(entry)
	s.mu.Unlock()
	s.config.Observe(entry)

	line := []byte(entry.Line())
	if s.config.JSON {
		encoded, err := json.Marshal(entry)
		if err != nil {
			return fmt.Errorf("print entry: %w", err)
		}
		line = encoded
	}
	s.out.Lock()
	defer s.out.Unlock()
	// A closed terminal must not make deliveries fail.
	_, _ = s.config.Out.Write(append(line, '\n'))
	return nil
}

// wait waits unless the sender leaves.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
