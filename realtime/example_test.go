package realtime_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/posthorn/posthorn/realtime"
)

// A hub behind an endpoint, a client that watches one topic, and a notification after a commit.
func Example() {
	hub, err := realtime.NewHub(realtime.Config{})
	if err != nil {
		panic(err)
	}
	endpoint := &realtime.Endpoint{Hub: hub, Authorize: func(r *http.Request, topics []realtime.Topic) (realtime.Principal, error) {
		if r.Header.Get("Authorization") != "Bearer for-ann" {
			return realtime.Principal{}, realtime.ErrUnauthenticated
		}
		for _, t := range topics {
			if t != "backlog" {
				return realtime.Principal{}, realtime.ErrForbidden
			}
		}
		return realtime.Principal{User: "ann", Tenant: "branch-7", APIToken: "tok_1"}, nil
	}}
	server := httptest.NewUnstartedServer(endpoint)
	server.Config.ConnContext = realtime.ConnContext
	server.Start()
	defer server.Close()
	defer func() { _ = hub.Drain(context.Background()) }()

	ctx, cancel := context.WithCancel(context.Background())
	client := &realtime.Client{
		URL:    server.URL,
		HTTP:   server.Client(),
		Header: http.Header{"Authorization": {"Bearer for-ann"}},
		OnGap: func(g realtime.Gap) {
			fmt.Println("load the backlog:", g)
			// Elsewhere, somebody commits.
			_ = hub.Publish("branch-7", realtime.Notification{
				Topic: "backlog", Version: 41, Change: "updated", Freshness: realtime.Immediate(),
			})
		},
	}
	_ = client.Watch(ctx, []realtime.Topic{"backlog"}, func(n realtime.Notification) {
		fmt.Println("load the backlog again: version", n.Version)
		cancel()
	})
	// Output:
	// load the backlog: start
	// load the backlog again: version 41
}

// Signing somebody out everywhere ends their live connections at once.
func ExampleHub_Revoke() {
	hub, err := realtime.NewHub(realtime.Config{})
	if err != nil {
		panic(err)
	}
	closed := hub.Revoke(realtime.Grant{User: "ann"}, "signed-out")
	fmt.Println(closed, "connections closed")
	// Output: 0 connections closed
}

// What an advisory value looks like on the wire, for a screen that has to say who decides.
func ExampleAdvisory() {
	b, err := realtime.Advisory("use-case:lend-a-copy").MarshalJSON()
	fmt.Println(string(b), err)
	// Output: {"mode":"advisory","authority":"use-case:lend-a-copy"} <nil>
}
