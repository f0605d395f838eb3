// Liveshop tells open screens of its orders: a net/http server of its own, with the endpoint of server-sent events, and a client that stays
// connected and asks again when it is told to.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/realtime"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// authorize lets the shop's own staff listen to its orders. A real one reads a session.
func authorize(r *http.Request, topics []realtime.Topic) (realtime.Principal, error) {
	if r.Header.Get("Authorization") != "Bearer staff" {
		return realtime.Principal{}, realtime.ErrUnauthenticated
	}
	for _, t := range topics {
		if t != "orders" {
			return realtime.Principal{}, realtime.ErrForbidden
		}
	}
	return realtime.Principal{User: "ann", Tenant: "shop", APIToken: "staff"}, nil
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	hub, err := realtime.NewHub(realtime.Config{})
	if err != nil {
		return err
	}
	var paid atomic.Int64 // stands for the database
	mux := http.NewServeMux()
	mux.Handle("/events", &realtime.Endpoint{Hub: hub, Authorize: authorize})
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]int64{"paid": paid.Load()})
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) {
		version := paid.Add(1) // … and after the commit:
		_ = hub.Publish("shop", realtime.Notification{Topic: "orders", Version: version, Change: "paid", Freshness: realtime.Immediate()})
		w.WriteHeader(http.StatusNoContent)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ConnContext: realtime.ConnContext, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(func() { _ = hub.Drain(ctx) })
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { _ = server.Shutdown(ctx); <-served }()
	url := "http://" + listener.Addr().String()

	watching, done := context.WithCancel(ctx)
	defer done()
	failed := make(chan error, 1)
	client := &realtime.Client{URL: url + "/events", Header: http.Header{"Authorization": {"Bearer staff"}}, OnGap: func(realtime.Gap) {
		response, err := http.Post(url+"/orders", "application/json", nil) // the first connection stands: somebody pays
		if err != nil {
			failed <- err
			done()
			return
		}
		_ = response.Body.Close()
	}}
	_ = client.Watch(watching, []realtime.Topic{"orders"}, func(n realtime.Notification) {
		defer done()
		response, err := http.Get(url + "/orders") // a notification is a hint, the query is the truth
		if err != nil {
			failed <- err
			return
		}
		defer response.Body.Close()
		var orders struct{ Paid int64 }
		if err := json.NewDecoder(response.Body).Decode(&orders); err != nil {
			failed <- err
			return
		}
		fmt.Printf("%s %s: %d order\n", n.Topic, n.Change, orders.Paid)
	})
	select {
	case err := <-failed:
		return err
	default:
		return ctx.Err()
	}
}
