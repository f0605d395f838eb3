// Package realtime tells open screens that something changed, while it still matters: topics, a hub, an HTTP endpoint of
// server-sent events, and a client that stays connected.
//
// A [Notification] is a hint and not a payload. It says which resource of which topic changed and with which version; whoever
// receives it asks the query that owns the truth. All the rest follows from this: only the newest notification of a topic has to
// arrive, so what a slow client costs is bounded by its topics, and so a burst closes nobody.
//
//	hub, err := realtime.NewHub(realtime.Config{})
//	mux.Handle("/v1/events", &realtime.Endpoint{Hub: hub, Authorize: authorize})
//	server.ConnContext = realtime.ConnContext
//	server.RegisterOnShutdown(func() { hub.Drain(ctx) })
//	…
//	// after the commit
//	hub.Publish(tenant, realtime.Notification{Topic: "backlog", Version: seq, Change: "updated", Freshness: realtime.Immediate()})
//
// # Guarantees
//
//   - Publish does not wait for any client, nor for the goroutine that tells them.
//   - While a connection stands and its client reads, the newest notification of each of its topics arrives.
//   - A client that hangs delays nobody else. It holds at most four events and one notification for each of its topics, until the
//     write time-out closes its connection, with a reason that is counted.
//   - A client that comes back with the id of the last event it received is told the newest notification of every topic that
//     changed since, or told by a reset that this is not known. It is never left waiting for what will not come.
//   - Each connection is authenticated, and each of its topics authorized, before it is admitted. When Revoke returns, nothing
//     queued is delivered any more to the connections it concerns, and no request that was authorized before it slips in after it.
//     The same holds where access expires or a revalidation says no. Clients are told why the server ends their stream, unless they
//     do not read.
//   - The number of connections that Stats gives is the number that is being served. Every ending has a reason, and leaves no
//     goroutine.
//
// # Caveats
//
//   - Notifications are lossy: a process that crashes after a commit and before Publish notifies nobody. Clients learn of the
//     restart by the new epoch, and refresh. What must not be lost belongs into an outbox.
//   - Notifications of one topic may be coalesced, repeated and, rarely, late; those of different topics may be reordered. [Client]
//     drops what is not newer than what it has seen. Versions are compared within a topic
//     and never across topics, so a topic that covers many resources needs versions that rise over all of them.
//   - The hub learns that access has changed by Revoke, by Principal.Expires, or by asking Config.Revalidate. A change of which nobody
//     tells it, such as one made in the database by hand, is seen at the next revalidation and no sooner.
//   - The history is in memory, and has one epoch for each hub.
//   - The id of an event is a cursor to resume from, and may be lower than the place of the notification beside it.
//   - A handler in front of an [Endpoint] that hides the connection needs an Unwrap method (see [net/http.ResponseController]), and
//     one that compresses or buffers responses has to leave text/event-stream alone.
//   - Over HTTP/1.1 the TCP connection is closed when a stream ends. Browsers allow six of them for a host, over all tabs.
//   - Of a client that does not read, the kernel holds up to the send buffer more; it is bounded only where the server has
//     [ConnContext].
//
// # Stability
//
// From version 1.0 of the module on, what is exported here, the events on the wire and the reasons in [Stats] change only by
// addition. Before it, the changelog names what breaks.
package realtime
