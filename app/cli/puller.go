package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/outbox"
)

// The exit codes of sysexits.h by which a command says more than that it failed.
const (
	exitDataError   = 65
	exitTemporarily = 75
)

// puller runs a command for each delivery that it is handed.
type puller struct {
	posthorn    *client.Client
	ask         func(url.Values) string
	settle      func(outbox.DeliveryID) string
	once        bool
	command     []string
	environment []string

	mu     sync.Mutex // guards out and errors
	out    *terminal
	errors io.Writer
}

// pulled is a delivery that was handed out.
type pulled struct {
	ID             outbox.DeliveryID `json:"id"`
	Fence          outbox.Fence      `json:"fence"`
	Attempt        int               `json:"attempt"`
	LeaseExpiresAt time.Time         `json:"lease_expires_at"`
	Message        struct {
		ID            string            `json:"id"`
		Type          string            `json:"type"`
		SchemaVersion int               `json:"schema_version"`
		OccurredAt    time.Time         `json:"occurred_at"`
		OrderingKey   string            `json:"ordering_key"`
		ContentType   string            `json:"content_type"`
		Headers       map[string]string `json:"headers"`
		Payload       *string           `json:"payload"`
		PayloadBase64 string            `json:"payload_base64"`
	} `json:"message"`
}

// settlement is what is said of one.
type settlement struct {
	Fence      outbox.Fence `json:"fence"`
	Outcome    string       `json:"outcome"`
	Error      string       `json:"error,omitempty"`
	RetryAfter string       `json:"retry_after,omitempty"`
}

// handle runs the command for a delivery and says how it went. It does not break off when ctx ends: a command that has begun is let end, as long as
// its lease lasts.
func (p *puller) handle(ctx context.Context, d pulled) {
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	began := time.Now()
	extending := make(chan struct{})
	go func() {
		defer close(extending)
		p.extend(alive, kill, d)
	}()
	s := p.execute(alive, d)
	lost := alive.Err() != nil
	kill()
	<-extending
	if lost {
		p.tell(d, "lost", "its lease was lost, and the command killed", began)
		return
	}
	if err := p.posthorn.Do(context.WithoutCancel(ctx), http.MethodPost, p.settle(d.ID), s, nil); err != nil {
		p.tell(d, "lost", "it went "+s.Outcome+", which could not be told: "+err.Error(), began)
		return
	}
	p.tell(d, s.Outcome, s.Error, began)
}

// extend keeps the lease until alive ends. When the lease is lost it ends alive.
func (p *puller) extend(alive context.Context, kill func(), d pulled) {
	length := time.Until(d.LeaseExpiresAt)
	for expires := d.LeaseExpiresAt; ; {
		select {
		case <-alive.Done():
			return
		case <-time.After(max(length/3, 100*time.Millisecond)):
		}
		var answer struct {
			LeaseExpiresAt time.Time `json:"lease_expires_at"`
		}
		err := p.posthorn.Do(alive, http.MethodPost, p.settle(d.ID), settlement{Fence: d.Fence, Outcome: "extended"}, &answer)
		switch {
		case alive.Err() != nil:
			return
		case err == nil:
			expires = answer.LeaseExpiresAt
		case !passing(err) || time.Now().After(expires):
			kill()
			return
		}
	}
}

// execute runs the command until it ends, or alive does.
func (p *puller) execute(alive context.Context, d pulled) settlement {
	s := settlement{Fence: d.Fence, Outcome: "failed"}
	payload, err := d.payload()
	if err != nil {
		s.Error = err.Error()
		return s
	}
	command := exec.CommandContext(alive, p.command[0], p.command[1:]...)
	command.Env = append(slices.Clone(p.environment), d.environment()...)
	command.Stdin = bytes.NewReader(payload)
	command.WaitDelay = 5 * time.Second // for what it started and left behind with its output open
	var said lastLine
	command.Stdout, command.Stderr = p.through(p.out.out), io.MultiWriter(p.through(p.errors), &said)
	err = command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		s.Outcome = "delivered"
		return s
	case !errors.As(err, &exit):
		s.Outcome, s.RetryAfter = "released", "10s" // it did not run at all, which says nothing about the delivery
	case exit.ExitCode() == exitDataError:
		s.Outcome = "rejected"
	case exit.ExitCode() == exitTemporarily:
		s.Outcome = "throttled"
	}
	s.Error = strings.TrimSpace(err.Error() + ": " + said.text())
	s.Error = strings.TrimSuffix(s.Error, ":")
	return s
}

// through writes what commands say, one write at a time.
func (p *puller) through(to io.Writer) io.Writer {
	return writerFunc(func(text []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return to.Write(text)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

func (p *puller) say(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.errors, format, values...)
}

// tell prints a line for a delivery that has ended. It goes where errors go, since the commands have the other.
func (p *puller) tell(d pulled, outcome, why string, began time.Time) {
	took := time.Since(began)
	if p.out.json {
		line, err := json.Marshal(map[string]any{"delivery": d.ID, "message": d.Message.ID, "type": d.Message.Type, "attempt": d.Attempt, "outcome": outcome,
			"error": why, "duration_ms": took.Milliseconds()})
		if err == nil {
			p.say("%s\n", line)
		}
		return
	}
	if why != "" {
		why = "  " + firstLine(clean(why))
	}
	p.say("%s  %-9s  %s  %s  attempt %d  %s%s\n", time.Now().Format(time.TimeOnly), outcome, clean(d.Message.Type), clean(d.Message.ID), d.Attempt, took.Round(time.Millisecond), why)
}

func (d pulled) payload() ([]byte, error) {
	if d.Message.Payload != nil {
		return []byte(*d.Message.Payload), nil
	}
	payload, err := base64.StdEncoding.DecodeString(d.Message.PayloadBase64)
	if err != nil {
		return nil, fmt.Errorf("read payload: %w", err)
	}
	return payload, nil
}

// environment is what a command is told beside the payload.
func (d pulled) environment() []string {
	headers, err := json.Marshal(d.Message.Headers)
	if err != nil {
		headers = []byte("{}")
	}
	return []string{
		"POSTHORN_DELIVERY=" + strconv.FormatInt(int64(d.ID), 10), "POSTHORN_ATTEMPT=" + strconv.Itoa(d.Attempt),
		"POSTHORN_MESSAGE=" + d.Message.ID, "POSTHORN_TYPE=" + d.Message.Type, "POSTHORN_SCHEMA_VERSION=" + strconv.Itoa(d.Message.SchemaVersion),
		"POSTHORN_OCCURRED_AT=" + d.Message.OccurredAt.Format(time.RFC3339Nano), "POSTHORN_ORDERING_KEY=" + d.Message.OrderingKey,
		"POSTHORN_CONTENT_TYPE=" + d.Message.ContentType, "POSTHORN_HEADERS=" + string(headers),
	}
}

// childEnvironment is this process's without its credential: a command that wants to speak to Posthorn has its own.
func childEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "POSTHORN_TOKEN=") })
}

// lastLine keeps the last line that is written to it, to a bound.
type lastLine struct{ line, last []byte }

const maxLine = 500

// Write never fails.
func (l *lastLine) Write(text []byte) (int, error) {
	for _, b := range text {
		switch {
		case b == '\n' && len(bytes.TrimSpace(l.line)) > 0:
			l.last, l.line = append(l.last[:0], l.line...), l.line[:0]
		case b == '\n':
			l.line = l.line[:0]
		case len(l.line) < maxLine:
			l.line = append(l.line, b)
		}
	}
	return len(text), nil
}

func (l *lastLine) text() string {
	line := l.line
	if len(bytes.TrimSpace(line)) == 0 {
		line = l.last
	}
	return clean(strings.ToValidUTF8(strings.TrimSpace(string(line)), "\uFFFD"))
}
