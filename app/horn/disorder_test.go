package horn_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// disorder is an HTTP proxy that repeats and reorders the notifications of streams, as no server should and some network may.
type disorder struct {
	url    string
	mangle atomic.Int64 // how many notifications were repeated or moved
}

func newDisorder(t *testing.T, to string) *disorder {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	d := &disorder{}
	transport := &http.Transport{}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		FlushInterval: -1,
		Transport:     transport,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path == "/v1/events" && r.StatusCode == http.StatusOK {
				r.Body = d.shuffled(r.Body)
			}
			return nil
		},
	})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	d.url = server.URL
	return d
}

// shuffled passes a stream on. Notifications are collected for a moment, and then told in any order, the newest of each topic among them, with
// repetitions and with some that are long past.
func (d *disorder) shuffled(body io.ReadCloser) io.ReadCloser {
	out, in := io.Pipe()
	events := make(chan []byte)
	go func() {
		defer close(events)
		var buffer []byte
		part := make([]byte, 4096)
		for {
			n, err := body.Read(part)
			buffer = append(buffer, part[:n]...)
			for {
				event, rest, found := bytes.Cut(buffer, []byte("\n\n"))
				if !found {
					break
				}
				events <- append(bytes.Clone(event), "\n\n"...)
				buffer = bytes.Clone(rest)
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		var past, held [][]byte
		flush := func() {
			told := append([][]byte{}, held...)
			for range held {
				told = append(told, held[rand.IntN(len(held))])
				if len(past) > 0 {
					told = append(told, past[rand.IntN(len(past))])
				}
			}
			rand.Shuffle(len(told), func(i, j int) { told[i], told[j] = told[j], told[i] })
			for _, event := range told {
				_, _ = in.Write(event)
			}
			d.mangle.Add(int64(len(told) - len(held)))
			past, held = append(past, held...), nil
		}
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case event, ok := <-events:
				if !ok {
					flush()
					_ = in.Close()
					return
				}
				if bytes.Contains(event, []byte("event: notification")) {
					held = append(held, event)
				} else if _, err := in.Write(event); err != nil {
					_ = body.Close()
				}
			case <-tick.C:
				flush()
			}
		}
	}()
	return &stream{out, body}
}

// stream reads from one and closes both.
type stream struct {
	*io.PipeReader
	body io.Closer
}

func (s *stream) Close() error {
	_ = s.PipeReader.Close()
	return s.body.Close()
}

// TestRepeatedAndReordered: with notifications in any order and any number, every view ends up as the query says, and shows no version older
// than one that it has shown.
func TestRepeatedAndReordered(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	between := newDisorder(t, p.url)
	followed := p.order(1, "order-placed")
	list, overview := p.enter(between.url, "/messages"), p.enter(between.url, "/")
	message, document := p.enter(between.url, "/messages/"+followed), p.enter(between.url, "/documents/orders/1")
	all := []*tab{list, overview, message, document}
	for _, tb := range all {
		tb.mark()
	}
	// What the document's page has shown, in order.
	eval[bool](document, `(() => {
	  window.versions = [];
	  new MutationObserver(() => {
	    const shown = Number(document.body.innerText.match(/Version (\d+)/)?.[1] ?? 0);
	    if (shown && shown !== window.versions.at(-1)) window.versions.push(shown);
	  }).observe(document.body, { subtree: true, childList: true, characterData: true });
	  return true;
	})()`)
	const rounds = 8
	for round := range rounds {
		if round == rounds/2 {
			receiver.answer(http.StatusInternalServerError, http.StatusBadRequest)
		}
		p.order(1, "order-cancelled")
		p.order(100+round, "order-placed") // with a key of its own: a dead letter holds its key back
		time.Sleep(100 * time.Millisecond) // so that there is more than one moment
	}
	list.lists(p, "", 1+2*rounds)
	overview.figures(p)
	message.state("dispatched")
	document.document(p, "orders", "1", 1+rounds)
	for i, versions := 1, eval[[]int](document, `window.versions`); i < len(versions); i++ {
		if versions[i] < versions[i-1] {
			t.Errorf("the document went back in time: %v", versions)
		}
	}
	if n := between.mangle.Load(); n < rounds {
		t.Errorf("only %d notifications were repeated: the test shows nothing", n)
	}
	for _, tb := range all {
		tb.phase("live")
		tb.unloaded()
		tb.clean()
	}
}
