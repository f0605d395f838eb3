//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// misdeed is how a target mistreats a request.
type misdeed string

const (
	answer500      misdeed = "500"
	answer503Asked misdeed = "503 with Retry-After"
	answer429Asked misdeed = "429 with Retry-After"
	answer408      misdeed = "408"
	answer422      misdeed = "422"
	redirect       misdeed = "307 to itself"
	gone           misdeed = "410"
	resetBefore    misdeed = "reset before the status"
	resetAfter200  misdeed = "reset after 200"
	resetAfter500  misdeed = "reset after 500"
	drip           misdeed = "200, then a dripping body"
	hugeBody       misdeed = "200 with 64 MiB"
	headerBomb     misdeed = "200 with 4 MiB of headers"
	informational  misdeed = "2,000 times 103, then 200"
	garbage        misdeed = "no HTTP"
	late           misdeed = "200 after 150 ms"
	tooLate        misdeed = "200 after the time-out"
	handled500     misdeed = "handled, answered 500"
)

// accepting lists the misdeeds after which the message is delivered: a 2xx status line was received, however the answer ended (P21).
var accepting = map[misdeed]bool{"": true, resetAfter200: true, drip: true, hugeBody: true, late: true}

// classes says what each misdeed may be taken for.
var classes = map[misdeed]string{
	answer500: "failed", answer503Asked: "throttled", answer429Asked: "throttled", answer408: "failed", answer422: "rejected", redirect: "rejected", gone: "gone",
	resetBefore: "unreachable", resetAfter500: "failed", headerBomb: "failed", informational: "failed", garbage: "failed", tooLate: "failed", handled500: "failed",
}

// perform answers an arrival as its misdeed says.
func perform(w http.ResponseWriter, r *http.Request, a *arrival) {
	plain := func(status int) {
		a.Answered = time.Now()
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
		a.Status = status
	}
	switch a.Misdeed {
	case answer500, handled500:
		plain(http.StatusInternalServerError)
	case answer503Asked, answer429Asked:
		a.Asked = askedWait
		w.Header().Set("Retry-After", fmt.Sprint(int(askedWait.Seconds())))
		if a.Misdeed == answer429Asked {
			plain(http.StatusTooManyRequests)
		} else {
			plain(http.StatusServiceUnavailable)
		}
	case answer408:
		plain(http.StatusRequestTimeout)
	case answer422:
		plain(http.StatusUnprocessableEntity)
	case gone:
		plain(http.StatusGone)
	case redirect:
		w.Header().Set("Location", r.URL.Path)
		plain(http.StatusTemporaryRedirect)
	case late:
		rest(r, 150*time.Millisecond)
		plain(http.StatusOK)
	case tooLate:
		rest(r, attemptTime+200*time.Millisecond)
		a.Answered = time.Now()
		panic(http.ErrAbortHandler) // else the server would answer 200 on its own
	case drip:
		w.Header().Set("Content-Length", "40")
		plain(http.StatusOK)
		for range 40 {
			rest(r, 5*time.Millisecond)
			if _, err := w.Write([]byte(".")); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
		}
	case hugeBody:
		w.Header().Set("Content-Length", fmt.Sprint(64<<20))
		plain(http.StatusOK)
		chunk := bytes.Repeat([]byte("posthorn"), 8<<10)
		for range 1024 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	case resetBefore:
		raw(w, a, 0)
	case resetAfter200:
		raw(w, a, http.StatusOK, "HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\nthe rest never ")
	case resetAfter500:
		raw(w, a, http.StatusInternalServerError, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4096\r\n\r\nthe rest never ")
	case headerBomb:
		raw(w, a, 0, "HTTP/1.1 200 OK\r\n", strings.Repeat("X-Bomb: "+strings.Repeat("b", 1000)+"\r\n", 4096), "\r\n")
	case informational:
		raw(w, a, 0, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n", 2000), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	case garbage:
		raw(w, a, 0, "SSH-2.0-OpenSSH_9.2\r\n")
	default:
		plain(http.StatusOK)
	}
}

// rest waits, or until the sender has left.
func rest(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

// raw writes bytes as they are and resets the connection. The bytes are given time to arrive: a reset overtakes what the sender has not read.
func raw(w http.ResponseWriter, a *arrival, status int, parts ...string) {
	a.Answered = time.Now()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	for _, part := range parts {
		if _, err := conn.Write([]byte(part)); err != nil {
			return
		}
	}
	a.Status = status
	if status != 0 {
		time.Sleep(20 * time.Millisecond)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes the close a reset
	}
}
