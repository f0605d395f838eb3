package realtime

import (
	"io"
	"time"
)

// watchdog bites when the server is silent for too long. It watches only while the client waits for the server: the time that a
// caller takes over a notification is not the server's.
type watchdog struct {
	after time.Duration
	timer *time.Timer
}

func newWatchdog(after time.Duration, bite func()) *watchdog {
	return &watchdog{after: after, timer: time.AfterFunc(after, bite)}
}

func (d *watchdog) stop() { d.timer.Stop() }

func (d *watchdog) guard(r io.Reader) io.Reader { return guarded{d, r} }

type guarded struct {
	dog *watchdog
	r   io.Reader
}

func (g guarded) Read(p []byte) (int, error) {
	g.dog.timer.Reset(g.dog.after)
	defer g.dog.timer.Stop()
	return g.r.Read(p)
}
