package realtime

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// history numbers notifications and remembers the last of them, so that a client that comes back is told what it missed. Since
// only the newest notification of a topic counts, resuming looks up the client's topics and never walks the ring.
type history struct {
	epoch  string
	seq    uint64
	size   uint64
	ring   []key // of the last size sequences; sequence n stands at (n-1) % size
	latest map[key]*published
}

func newHistory(size int) history {
	return history{epoch: randomHex(8), size: uint64(size), latest: map[key]*published{}}
}

// add numbers a notification. It returns nil where a newer version of the topic has been published already, which happens when
// two commits reach Publish in the other order.
func (h *history) add(k key, n Notification, data []byte) *published {
	if last := h.latest[k]; last != nil && !newer(last.note, n) {
		return nil
	}
	h.seq++
	p := &published{key: k, seq: h.seq, note: n, data: data}
	if at := (h.seq - 1) % h.size; h.seq <= h.size {
		h.ring = append(h.ring, k)
	} else {
		if last := h.latest[h.ring[at]]; last != nil && last.seq == h.seq-h.size {
			delete(h.latest, h.ring[at])
		}
		h.ring[at] = k
	}
	h.latest[k] = p
	return p
}

// resumption is what the history can say to a client that names the last event it has seen.
type resumption struct {
	// missed is what the client has yet to be told, oldest first.
	missed []*published
	// resumed: missed is complete. Otherwise reset says why it cannot be, or is empty for a client that is new.
	resumed bool
	reset   string
}

// The reasons in a reset event.
const (
	resetCursor  = "cursor"  // the id is none of ours
	resetEpoch   = "epoch"   // the hub has been restarted since
	resetHistory = "history" // more has happened since than the history holds
)

func (h *history) resume(lastEventID string, tenant string, topics []Topic) resumption {
	if lastEventID == "" {
		return resumption{}
	}
	epoch, digits, ok := strings.Cut(lastEventID, "-")
	last, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case !ok || err != nil || len(epoch) != len(h.epoch):
		return resumption{reset: resetCursor}
	case epoch != h.epoch:
		return resumption{reset: resetEpoch}
	case last > h.seq:
		return resumption{reset: resetCursor}
	case h.seq-last > h.size:
		return resumption{reset: resetHistory}
	}
	r := resumption{resumed: true}
	for _, t := range topics {
		if p := h.latest[key{tenant, t}]; p != nil && p.seq > last {
			r.missed = append(r.missed, p)
		}
	}
	sortBySeq(r.missed)
	return r
}

// id is the event id for a sequence.
func (h *history) id(seq uint64) string {
	b := make([]byte, 0, len(h.epoch)+1+20)
	b = append(b, h.epoch...)
	b = append(b, '-')
	return string(strconv.AppendUint(b, seq, 10))
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails; it ends the program where the system has no randomness
	return hex.EncodeToString(b)
}
