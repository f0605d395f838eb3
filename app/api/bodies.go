package api

import (
	"errors"
	"io"
	"sync/atomic"
)

// errBodies is answered while the bodies of all requests take up as much memory as they may.
var errBodies = errors.New("too many request bodies at once")

// bodies counts what the bodies of the requests take up, those of routes that anybody can reach apart from the others: whoever fills the
// one closes nothing for callers that are known.
type bodies struct{ known, public atomic.Int64 }

// room is one body's share. Its zero value, and nil, are none.
type room struct {
	all         *atomic.Int64
	taken, most int64
	body        io.Reader
}

func (b *bodies) room(public bool, most int64) *room {
	if public {
		return &room{all: &b.public, most: most}
	}
	return &room{all: &b.known, most: most}
}

// reader counts what is read, and not what is announced: a request that sends nothing takes nothing from others.
func (r *room) reader(body io.Reader) io.Reader {
	r.body = body
	return r
}

// Read fails with errBodies once all bodies together are too large.
func (r *room) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.taken += int64(n)
	if r.all.Add(int64(n)) > r.most {
		return n, errBodies
	}
	return n, err
}

// leave gives the share back when the request has been served.
func (r *room) leave() {
	if r != nil {
		r.all.Add(-r.taken)
		r.taken = 0
	}
}
