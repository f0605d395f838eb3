package need

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/posthorn/posthorn/realtime"
)

// Options say what to measure, and how long.
type Options struct {
	// URL and Token reach the Posthorn to be measured, as an admin. It is written to.
	URL, Token string
	// CPU tells how long its process has run on a processor so far. nil: not known.
	CPU func() (time.Duration, bool)
	// Intervals of polling. Default to 1, 2, 5 and 10 s.
	Intervals []time.Duration
	// Length is how long changes are made for each screen. Defaults to 12 s.
	Length time.Duration
	// Pause is the mean time between two changes. Defaults to 1 s.
	Pause time.Duration
	// Watchers is how many screens poll at each interval, and as many listen. Defaults to 10.
	Watchers int
	// Reads is how many reads the cost of one is drawn from. Defaults to 500.
	Reads int
	// Changes is the number of changes in an hour for which the costs are computed. Defaults to 600.
	Changes int
	// Budget decides.
	Budget Budget
	// Progress is told what is being measured.
	Progress func(done, all int, record string)
}

func (o *Options) fill() {
	if len(o.Intervals) == 0 {
		o.Intervals = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second}
	}
	o.Length = cmp.Or(o.Length, 12*time.Second)
	o.Pause = cmp.Or(o.Pause, time.Second)
	o.Watchers = cmp.Or(o.Watchers, 10)
	o.Reads = cmp.Or(o.Reads, 500)
	o.Changes = cmp.Or(o.Changes, 600)
	if o.CPU == nil {
		o.CPU = func() (time.Duration, bool) { return 0, false }
	}
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
}

// Measure measures the screens, one after the other.
func Measure(ctx context.Context, screens []Screen, opt Options) ([]Result, error) {
	opt.fill()
	s := &subject{Options: opt, meter: newMeter()}
	defer s.meter.close()
	if err := s.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare the measurement: %w", err)
	}
	var results []Result
	for i, screen := range screens {
		opt.Progress(i, len(screens), screen.Record)
		r, err := s.measure(ctx, screen)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", screen.Record, err)
		}
		r.judge(opt.Budget)
		results = append(results, r)
	}
	return results, nil
}

func (s *subject) measure(ctx context.Context, screen Screen) (Result, error) {
	r := Result{Record: screen.Record, Topic: screen.Topic, Target: screen.Target, Screens: screen.Screens, Changes: s.Changes}
	path, topic, change, err := s.stage(ctx, screen)
	if err != nil {
		return r, err
	}
	cpu, bytes, err := s.costOfRead(ctx, path)
	if err != nil {
		return r, err
	}
	delays, err := s.delays(ctx, path, change)
	if err != nil {
		return r, err
	}
	for i, every := range s.Intervals {
		reads := int64(time.Hour / every)
		w := Way{Every: every, CPU: cpu * time.Duration(reads), Bytes: bytes * reads}
		w.draw(delays[i])
		r.Polling = append(r.Polling, w)
	}
	if screen.Live {
		w, err := s.stream(ctx, path, topic, change)
		if err != nil {
			return r, err
		}
		r.Stream = &w
	}
	return r, nil
}

// costOfRead is what one read costs the server, and sends. The client is another process, so its work does not count.
func (s *subject) costOfRead(ctx context.Context, path string) (cpu time.Duration, bytes int64, err error) {
	for range 10 { // what is prepared once is not the cost of a read
		if err := s.read(ctx, s.meter, path); err != nil {
			return 0, 0, err
		}
	}
	ran, known := s.CPU()
	sent := s.meter.bytes.Load()
	for range s.Reads {
		if err := s.read(ctx, s.meter, path); err != nil {
			return 0, 0, err
		}
	}
	after, _ := s.CPU()
	bytes = (s.meter.bytes.Load() - sent) / int64(s.Reads)
	if !known {
		return -1, bytes, nil
	}
	return (after - ran) / time.Duration(s.Reads), bytes, nil
}

// read asks the query as a screen does.
func (s *subject) read(ctx context.Context, m *meter, path string) error {
	return s.ask(ctx, m, http.MethodGet, path, "", nil)
}

// delays makes changes while screens poll at each interval, and returns the visible delays for each.
func (s *subject) delays(ctx context.Context, path string, change func(context.Context) error) ([][]time.Duration, error) {
	m := newMeter()
	defer m.close()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var screens sync.WaitGroup
	seen := make([][]*record, len(s.Intervals))
	for i, every := range s.Intervals {
		for range s.Watchers {
			own := &record{}
			seen[i] = append(seen[i], own)
			screens.Go(func() {
				rest(reading, time.Duration(rand.Int64N(int64(every))))
				for reading.Err() == nil {
					sent := time.Now()
					if s.read(reading, m, path) == nil {
						own.add(sent, time.Now())
					}
					rest(reading, time.Until(sent.Add(every)))
				}
			})
		}
	}
	made, err := s.changes(ctx, change)
	if err != nil {
		stop()
		screens.Wait()
		return nil, err
	}
	rest(ctx, slices.Max(s.Intervals)+time.Second) // the slowest sees the last change
	stop()
	screens.Wait()
	delays := make([][]time.Duration, len(s.Intervals))
	for i := range seen {
		for _, own := range seen[i] {
			for _, c := range made {
				// A read that was sent after the answer to the change has it for certain.
				if at, ok := own.firstSentAfter(c.answered); ok {
					delays[i] = append(delays[i], at.Sub(c.answered))
				}
			}
		}
	}
	return delays, ctx.Err()
}

// changed is when a change was asked for, and when it was known to be committed.
type changed struct{ asked, answered time.Time }

// changes makes changes at random times, so that they fall into step with no interval.
func (s *subject) changes(ctx context.Context, change func(context.Context) error) ([]changed, error) {
	var made []changed
	for end := time.Now().Add(s.Length); time.Now().Before(end) && ctx.Err() == nil; {
		rest(ctx, s.Pause/2+time.Duration(rand.Int64N(int64(s.Pause))))
		c := changed{asked: time.Now()}
		if err := change(ctx); err != nil {
			return nil, err
		}
		c.answered = time.Now()
		made = append(made, c)
	}
	return made, ctx.Err()
}

// stream makes changes while screens listen and read on each hint.
func (s *subject) stream(ctx context.Context, path, topic string, change func(context.Context) error) (Way, error) {
	w := Way{CPU: -1}
	alone, _, err := s.ran(ctx, change)
	if err != nil {
		return w, err
	}
	m := newMeter()
	defer m.close()
	listening, stop := context.WithCancel(ctx)
	defer stop()
	var screens sync.WaitGroup
	var seen []*record
	ready := make(chan struct{}, s.Watchers)
	for range s.Watchers {
		own := &record{}
		seen = append(seen, own)
		c := &realtime.Client{
			URL: s.URL + "/v1/events", HTTP: m.client, Header: http.Header{"Authorization": {"Bearer " + s.Token}},
			OnGap: func(g realtime.Gap) {
				if g == realtime.GapStart {
					ready <- struct{}{}
				}
			},
		}
		screens.Go(func() {
			_ = c.Watch(listening, []realtime.Topic{realtime.Topic(topic)}, func(realtime.Notification) {
				told := time.Now()
				if s.read(listening, m, path) == nil {
					own.add(told, time.Now())
				}
			})
		})
	}
	for range s.Watchers {
		select {
		case <-ready:
		case <-ctx.Done():
			return w, ctx.Err()
		case <-time.After(30 * time.Second):
			stop()
			screens.Wait()
			return w, fmt.Errorf("the stream of %s did not begin", topic)
		}
	}
	sent := m.bytes.Load()
	together, made, err := s.ran(ctx, change)
	rest(ctx, time.Second)
	bytes := m.bytes.Load() - sent
	stop()
	screens.Wait()
	if err != nil {
		return w, err
	}
	var delays []time.Duration
	for _, own := range seen {
		for _, c := range made {
			if at, ok := own.firstSentAfter(c.asked); ok {
				delays = append(delays, max(0, at.Sub(c.answered)))
			}
		}
	}
	w.draw(delays)
	perChange := int64(len(made) * s.Watchers)
	if perChange == 0 {
		return w, nil
	}
	beats := int64(time.Hour / (15 * time.Second) * 60) // a heartbeat is some sixty bytes
	w.Bytes = bytes/perChange*int64(s.Changes) + beats
	if alone >= 0 {
		hint := max(0, together-alone) / time.Duration(perChange)
		w.CPU = hint * time.Duration(s.Changes)
	}
	return w, ctx.Err()
}

// ran makes changes and returns what the server spent meanwhile; negative: not known.
func (s *subject) ran(ctx context.Context, change func(context.Context) error) (time.Duration, []changed, error) {
	before, known := s.CPU()
	made, err := s.changes(ctx, change)
	after, _ := s.CPU()
	if !known {
		return -1, made, err
	}
	return after - before, made, err
}

// record is what one screen read, in order.
type record struct{ sent, at []time.Time }

func (r *record) add(sent, at time.Time) { r.sent, r.at = append(r.sent, sent), append(r.at, at) }

func (r *record) firstSentAfter(t time.Time) (time.Time, bool) {
	i, _ := slices.BinarySearchFunc(r.sent, t, time.Time.Compare)
	if i == len(r.sent) {
		return time.Time{}, false
	}
	return r.at[i], true
}

func (w *Way) draw(delays []time.Duration) {
	w.Seen = len(delays)
	if len(delays) == 0 {
		return
	}
	slices.Sort(delays)
	w.P50, w.P99 = delays[len(delays)/2], delays[min(len(delays)-1, len(delays)*99/100)]
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// drain reads an answer to its end, so that the connection is kept.
func drain(r *http.Response) string {
	defer func() { _ = r.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	return strings.TrimSpace(string(text))
}
