package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/posthorn/posthorn/realtime"
)

// ErrNotRunning is returned for what only a running Posthorn can do.
var ErrNotRunning = errors.New("no Posthorn runs on this data folder")

// Watch calls changed whenever the topics may have changed, at first and after each gap too, until ctx ends. down, unless nil, is told of
// each loss of the connection. path is that of the live events, with a query where one is wanted.
func (c *Client) Watch(ctx context.Context, path string, topics []realtime.Topic, changed func(), down func(cause error, wait time.Duration)) error {
	if c.Local() {
		return ErrNotRunning
	}
	header := http.Header{}
	if c.token != "" {
		header.Set("Authorization", "Bearer "+c.token)
	}
	stream := &realtime.Client{
		URL: c.base + path, HTTP: &http.Client{Transport: c.http.Transport}, Header: header,
		OnGap: func(realtime.Gap) { changed() }, OnDown: down,
	}
	return stream.Watch(ctx, topics, func(realtime.Notification) { changed() })
}

// Local says that the client opened the data folder itself: nothing runs there.
func (c *Client) Local() bool {
	_, local := c.http.Transport.(inProcess)
	return local
}
