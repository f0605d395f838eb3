package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sethvargo/go-retry"
)

// hopeless is after how many starts in a row that did not come to answer requests the supervisor gives up.
const hopeless = 4

// Exit codes of `serve` that another start cannot mend.
var final = map[int]bool{2: true, 70: false, 73: true, 74: true, 75: true}

// supervisor keeps a child running.
type supervisor struct {
	config Config
	screen *screen
	// onReady is called each time a child answers requests; its context ends with that child.
	onReady func(ctx context.Context, said ready)
	force   <-chan os.Signal
}

// run starts the child, and starts it again when it dies, until the context ends. Then it drains the child and returns.
func (s *supervisor) run(ctx context.Context) error {
	listen := s.config.Listen
	failures := 0
	backoff := newBackoff()
	for ctx.Err() == nil {
		c, err := start(s.config, listen)
		if err != nil {
			return err
		}
		life, end := context.WithCancel(ctx)
		said, ok := c.ready(life, folder(s.config.DataDir))
		if ok {
			// Any port the first time, the same ever after: the curl on the screen stays right.
			listen = strings.TrimPrefix(said.URL, "http://")
			failures, backoff = 0, newBackoff()
			s.config.AcceptLostTail = false // what is lost later is another matter
			s.onReady(life, said)
		}
		select {
		case <-c.exited:
			end()
		case <-ctx.Done():
			end()
			c.stop(s.force)
			return nil
		}
		if !ok {
			failures++
		}
		if code := c.state.ExitCode(); !ok && (final[code] || failures >= hopeless) {
			return s.hopeless(c)
		}
		delay, _ := backoff.Next()
		s.screen.died(c.process.Pid, c.state.String(), delay)
		sleep(ctx, delay)
	}
	return nil
}

func newBackoff() retry.Backoff {
	return retry.WithCappedDuration(8*time.Second, retry.NewExponential(time.Second))
}

// hopeless says why the child cannot run, in its own last words.
func (s *supervisor) hopeless(c *child) error {
	code := max(c.state.ExitCode(), 1)
	log := folder(s.config.DataDir).log()
	sentence := fmt.Sprintf("posthorn serve cannot start (%s)", c.state)
	if words := lastWords(log); words != "" {
		sentence += ":\n" + words
	}
	return &Failure{Code: code, Sentence: sentence, Advice: "its log is " + log}
}

// lastWords are the last lines of a log.
func lastWords(path string) string {
	const lines, window = 6, 8 << 10
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	text = bytes.TrimSpace(text[max(0, len(text)-window):])
	found := strings.Split(string(text), "\n")
	for i, line := range found {
		found[i] = "  " + line
	}
	return strings.Join(found[max(0, len(found)-lines):], "\n")
}

// sleep waits unless the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
