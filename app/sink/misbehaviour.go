package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Reset is when a connection is reset.
type Reset string

// The resets.
const (
	NoReset     Reset = ""
	ResetBefore Reset = "before-status" // the sender gets no answer
	ResetAfter  Reset = "after-status"  // the sender gets a complete head and a body that breaks off
)

// Misbehaviour is what a sink does instead of answering 200 at once. The zero value behaves. Faults add up: a delay, then a status with a
// body that drips.
type Misbehaviour struct {
	// Rate is the share of requests that are treated so, from 0 to 1. Defaults to 1.
	Rate float64
	// Times ends the misbehaviour after so many requests. Defaults to no end.
	Times int
	// Status is the status answered, from 200 to 599. A message answered other than 2xx is not handled. A redirect points to itself.
	Status int
	// RetryAfter is sent as the Retry-After header, as it is.
	RetryAfter string
	// Delay passes between handling a message and answering.
	Delay time.Duration
	// Drip passes between the bytes of the answer's body; the body has 64 bytes unless BodyBytes says otherwise.
	Drip time.Duration
	// BodyBytes is the length of the answer's body.
	BodyBytes int64
	// Reset resets the connection.
	Reset Reset
	// Duplicates handles a message that is new and then answers as if it had failed (Status, or 500), so that the sender repeats it.
	// Repeats are answered 200.
	Duplicates bool
}

// misbehaviourJSON is Misbehaviour on the wire, its durations as "250ms".
type misbehaviourJSON struct {
	Rate       float64 `json:"rate,omitempty"`
	Times      int     `json:"times,omitempty"`
	Status     int     `json:"status,omitempty"`
	RetryAfter string  `json:"retry_after,omitempty"`
	Delay      string  `json:"delay,omitempty"`
	Drip       string  `json:"drip,omitempty"`
	BodyBytes  int64   `json:"body_bytes,omitempty"`
	Reset      Reset   `json:"reset,omitempty"`
	Duplicates bool    `json:"duplicates,omitempty"`
}

// MarshalJSON writes durations as "250ms".
func (m Misbehaviour) MarshalJSON() ([]byte, error) {
	wire := misbehaviourJSON{
		Rate: m.Rate, Times: m.Times, Status: m.Status, RetryAfter: m.RetryAfter, BodyBytes: m.BodyBytes, Reset: m.Reset, Duplicates: m.Duplicates,
	}
	if m.Delay != 0 {
		wire.Delay = m.Delay.String()
	}
	if m.Drip != 0 {
		wire.Drip = m.Drip.String()
	}
	return json.Marshal(wire)
}

// UnmarshalJSON refuses unknown fields.
func (m *Misbehaviour) UnmarshalJSON(text []byte) error {
	var wire misbehaviourJSON
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wire); err != nil {
		return err
	}
	parsed := Misbehaviour{
		Rate: wire.Rate, Times: wire.Times, Status: wire.Status, RetryAfter: wire.RetryAfter, BodyBytes: wire.BodyBytes, Reset: wire.Reset, Duplicates: wire.Duplicates,
	}
	for _, field := range []struct {
		text string
		to   *time.Duration
	}{{wire.Delay, &parsed.Delay}, {wire.Drip, &parsed.Drip}} {
		if field.text == "" {
			continue
		}
		duration, err := time.ParseDuration(field.text)
		if err != nil {
			return errors.New("a duration is not written like 250ms or 3s")
		}
		*field.to = duration
	}
	*m = parsed
	return nil
}

// readMisbehaviour reads exactly one object.
func readMisbehaviour(body io.Reader) (Misbehaviour, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return Misbehaviour{}, fmt.Errorf("read misbehaviour: %w", err)
	}
	var m Misbehaviour
	if err := json.Unmarshal(text, &m); err != nil {
		return Misbehaviour{}, fmt.Errorf("read misbehaviour: %w", err)
	}
	return m, m.validate()
}

func (m Misbehaviour) validate() error {
	switch {
	case !(m.Rate >= 0 && m.Rate <= 1):
		return errors.New("rate is not from 0 to 1")
	case m.Times < 0:
		return errors.New("times is negative")
	case m.Status != 0 && (m.Status < 200 || m.Status > 599):
		return errors.New("status is not from 200 to 599")
	case m.Delay < 0 || m.Delay > 10*time.Minute:
		return errors.New("delay is not from 0 to 10m")
	case m.Drip < 0 || m.Drip > time.Minute:
		return errors.New("drip is not from 0 to 1m")
	case m.BodyBytes < 0 || m.BodyBytes > 1<<30:
		return errors.New("body_bytes is not from 0 to 1 GiB")
	case m.Reset != NoReset && m.Reset != ResetBefore && m.Reset != ResetAfter:
		return fmt.Errorf("reset is neither %q nor %q", ResetBefore, ResetAfter)
	case len(m.RetryAfter) > 256 || strings.ContainsAny(m.RetryAfter, "\r\n\x00"):
		return errors.New("retry_after is no header value")
	case m.Duplicates && m.Status >= 200 && m.Status < 300:
		return errors.New("duplicates need a status that is no success")
	}
	return nil
}

func (m Misbehaviour) behaves() bool {
	return m.Status == 0 && m.RetryAfter == "" && m.Delay == 0 && m.Drip == 0 && m.BodyBytes == 0 && m.Reset == NoReset && !m.Duplicates
}

// String names the faults for a log line.
func (m Misbehaviour) String() string {
	var faults []string
	if m.Status != 0 {
		faults = append(faults, fmt.Sprintf("status %d", m.Status))
	}
	if m.Delay != 0 {
		faults = append(faults, "delay "+m.Delay.String())
	}
	if m.Drip != 0 {
		faults = append(faults, "drip "+m.Drip.String())
	}
	if m.BodyBytes != 0 {
		faults = append(faults, fmt.Sprintf("body of %d bytes", m.BodyBytes))
	}
	if m.Reset != NoReset {
		faults = append(faults, "reset "+string(m.Reset))
	}
	if m.Duplicates {
		faults = append(faults, "handled, answered as failed")
	}
	if m.RetryAfter != "" {
		faults = append(faults, "retry-after")
	}
	return strings.Join(faults, ", ")
}
