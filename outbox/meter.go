package outbox

import (
	"slices"
	"time"
)

const (
	meterSlot  = 10 * time.Second
	meterSlots = 360 // an hour
	meterLast  = 1024
)

// meter keeps the recent attempts of one handler: how many ended how in each ten seconds of the last hour, and how long the latest took.
type meter struct {
	slots     [meterSlots]meterCount
	durations [meterLast]time.Duration
	n         int
}

type meterCount struct {
	slot      int64
	delivered int64
	ended     int64
}

func (m *meter) record(at time.Time, took time.Duration, delivered bool) {
	slot := at.UnixNano() / int64(meterSlot)
	c := &m.slots[slot%meterSlots]
	if c.slot != slot {
		*c = meterCount{slot: slot}
	}
	c.ended++
	if delivered {
		c.delivered++
	}
	m.durations[m.n%meterLast] = took
	m.n++
}

// counts adds up the attempts of the last window.
func (m *meter) counts(now time.Time, window time.Duration) (delivered, ended int64) {
	last := now.UnixNano() / int64(meterSlot)
	first := last - int64(window/meterSlot) + 1
	for _, c := range m.slots {
		if c.slot >= first && c.slot <= last {
			delivered += c.delivered
			ended += c.ended
		}
	}
	return delivered, ended
}

// latest returns a copy of the latest durations.
func (m *meter) latest() []time.Duration {
	return slices.Clone(m.durations[:min(m.n, meterLast)])
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
