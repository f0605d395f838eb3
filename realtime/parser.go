package realtime

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// errOversize: an event was larger than the parser keeps. It has been skipped, and the next can be read.
var errOversize = errors.New("event is larger than the client accepts")

// parser reads an event stream by the rules of the WHATWG HTML standard, section "Interpreting an event stream". Beyond them it
// bounds what it holds: an event that is larger is skipped, as is one that the stream's end cuts off.
type parser struct {
	r   *bufio.Reader
	max int

	// lastID is the last event id as of the last blank line: what Last-Event-ID is sent as.
	lastID string
	// retry is the last reconnection time that the stream set.
	retry time.Duration

	begun  bool // the first line has been read, with the byte order mark that may stand before it
	skipLF bool // the last line ended with CR: an LF that follows belongs to it

	line []byte
	// The buffers of the standard.
	id, name string
	data     []byte
	oversize bool
}

// streamEvent is an event as it is dispatched.
type streamEvent struct {
	name string // "message" where the stream gave none
	data string
	id   string // the last event id, of this event or one before
}

func newParser(r io.Reader, limit int, lastID string) *parser {
	return &parser{r: bufio.NewReaderSize(r, 4096), max: limit, lastID: lastID, id: lastID}
}

// next returns the next event. After errOversize it may be called again; any other error is the reader's, and is final.
func (p *parser) next() (streamEvent, error) {
	for {
		blank, err := p.readLine()
		if err != nil {
			return streamEvent{}, err
		}
		if !blank {
			p.field()
			continue
		}
		p.lastID = p.id
		name, data, oversize := p.name, p.data, p.oversize
		p.name, p.data, p.oversize = "", p.data[:0], false
		if oversize {
			return streamEvent{}, fmt.Errorf("read event: %w: %d bytes", errOversize, p.max)
		}
		if len(data) == 0 {
			continue
		}
		if name == "" {
			name = "message"
		}
		return streamEvent{name: name, data: decode(data[:len(data)-1]), id: p.lastID}, nil
	}
}

// readLine reads a line into p.line, without its end, and reports whether it was blank. It returns at the CR of a line that ends
// with CR LF, since waiting for the LF would hold back the event that the line completes.
func (p *parser) readLine() (blank bool, err error) {
	p.line = p.line[:0]
	length := 0
	for {
		if _, err := p.r.Peek(1); err != nil {
			return false, err // a line that is cut off is no line
		}
		chunk, _ := p.r.Peek(p.r.Buffered())
		if p.skipLF {
			p.skipLF = false
			if chunk[0] == '\n' {
				_, _ = p.r.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		part := chunk
		if end >= 0 {
			part = chunk[:end]
		}
		length += len(part)
		if room := p.max - len(p.line); len(part) > room {
			p.oversize = true
			part = part[:room]
		}
		p.line = append(p.line, part...)
		if end < 0 {
			_, _ = p.r.Discard(len(chunk))
			continue
		}
		p.skipLF = chunk[end] == '\r'
		_, _ = p.r.Discard(end + 1)
		break
	}
	if !p.begun {
		p.begun = true
		if bytes.HasPrefix(p.line, byteOrderMark) {
			p.line = p.line[len(byteOrderMark):]
			length -= len(byteOrderMark)
		}
	}
	return length == 0, nil
}

var byteOrderMark = []byte("\ufeff")

// field takes one line into the buffers.
func (p *parser) field() {
	name, value, _ := strings.Cut(string(p.line), ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "": // a comment
	case "event":
		p.name = decode([]byte(value))
	case "data":
		if len(p.data)+len(value)+1 > p.max {
			p.oversize = true
			return
		}
		p.data = append(append(p.data, value...), '\n')
	case "id":
		if !strings.Contains(value, "\x00") {
			p.id = decode([]byte(value))
		}
	case "retry":
		if d, ok := milliseconds(value); ok {
			p.retry = d
		}
	}
}

// milliseconds reads a value of ASCII digits only. What is longer than a day is a day: nobody means it.
func milliseconds(s string) (time.Duration, bool) {
	const longest = 24 * time.Hour
	if s == "" {
		return 0, false
	}
	var ms int64
	for _, b := range []byte(s) {
		if b < '0' || b > '9' {
			return 0, false
		}
		ms = min(ms*10+int64(b-'0'), longest.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, true
}

// decode makes text of bytes as browsers do: each longest beginning of a character that is broken off, and each byte that
// begins none, becomes one U+FFFD.
func decode(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			size = broken(b)
		}
		s.WriteRune(r)
		b = b[size:]
	}
	return s.String()
}

// broken is the length of the longest prefix of b that could begin a character, or 1. b does not begin with a whole one.
func broken(b []byte) int {
	low, high, need := byte(0x80), byte(0xBF), 0
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= low && b[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}
