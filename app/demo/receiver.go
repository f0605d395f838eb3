package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/posthorn/posthorn/app/sink"
)

// destinationName is the receiver's destination.
const destinationName = "demo-receiver"

// receiver is the built-in receiver: a sink on a loopback port.
type receiver struct {
	sink     *sink.Sink
	server   *http.Server
	listener net.Listener
}

// receive starts the receiver at the address that an earlier start chose, or at a new one.
func receive(ctx context.Context, config Config, remembered memory, observe func(sink.Entry)) (*receiver, error) {
	address := config.Receiver
	if remembered.Receiver != "" {
		address = remembered.Receiver
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		advice := "choose another address with --receiver"
		if remembered.Receiver != "" {
			advice = "is another demo running on this data folder? An earlier start chose this address; delete " + config.DataDir + " to start afresh"
		}
		return nil, &Failure{Code: 1, Sentence: fmt.Sprintf("the receiver cannot listen: %v", err), Advice: advice}
	}
	settings := sink.Config{Journal: folder(config.DataDir).journal(), Observe: observe}
	if remembered.Secret != "" {
		settings.Secrets = []string{remembered.Secret}
	}
	opened, err := sink.New(settings)
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("start receiver: %w", err)
	}
	r := &receiver{sink: opened, listener: listener, server: &http.Server{Handler: opened, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = r.server.Serve(listener) }() // ends by close
	return r, nil
}

func (r *receiver) address() string { return r.listener.Addr().String() }

func (r *receiver) url() string { return "http://" + r.address() + "/" }

func (r *receiver) close() error { return errors.Join(r.server.Close(), r.sink.Close()) }

// mood is how the receiver behaves for a while.
type mood struct {
	lasts        time.Duration
	misbehaviour sink.Misbehaviour
}

// moods: mostly good, with what receivers are like.
var moods = []mood{
	{12 * time.Second, sink.Misbehaviour{Rate: 0.2, Status: http.StatusServiceUnavailable}},
	{8 * time.Second, sink.Misbehaviour{}},
	{8 * time.Second, sink.Misbehaviour{Rate: 0.25, Delay: 1500 * time.Millisecond}},
	{8 * time.Second, sink.Misbehaviour{}},
	{8 * time.Second, sink.Misbehaviour{Rate: 0.25, Duplicates: true}},
	{8 * time.Second, sink.Misbehaviour{}},
}

// misbehave changes the receiver's mood until the context ends, and leaves it in a good one, so that a drain goes smoothly.
func (r *receiver) misbehave(ctx context.Context) {
	for ctx.Err() == nil {
		for _, mood := range moods {
			_ = r.sink.Misbehave(mood.misbehaviour) // refuses none of these
			sleep(ctx, mood.lasts)
		}
	}
	_ = r.sink.Misbehave(sink.Misbehaviour{})
}
