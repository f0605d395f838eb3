package webhook

import (
	"crypto/tls"
	"net/http"
	"time"
)

const (
	// headBytes bounds the head of an answer, informational answers before it included.
	headBytes = 64 << 10
	// bodyBytes is how much of an answer's body is read so that its connection can be used again; a longer one costs the connection.
	bodyBytes = 64 << 10
	// bodyTime is how long that may take: once the head has said what became of the delivery, a dripping body only holds the slot.
	bodyTime = 2 * time.Second
	// idleTime is below the keep-alive time-out of common servers (5 s), since a POST on a connection that the server is just closing fails
	// without telling whether it arrived. A busy lane's connections are never idle so long.
	idleTime = 4 * time.Second
)

// transport returns a client of its own for one target, so that no destination takes another's connections.
func transport(c Config) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // one from the environment would be judged in the target's place
		DialContext:            c.Egress.Dialer(c.Timeout, c.Resolver).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs},
		TLSHandshakeTimeout:    c.Timeout,
		ForceAttemptHTTP2:      true, // own dialler and TLS settings would switch it off
		MaxIdleConns:           c.Concurrency,
		MaxIdleConnsPerHost:    c.Concurrency,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: headBytes,
		DisableCompression:     true, // excerpts are short, and nothing unpacks to more than was sent
		// One dead HTTP/2 connection would take every attempt of the lane with it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
	}
}
