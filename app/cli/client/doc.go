// Package client speaks Posthorn's HTTP API: over the unix socket of a running process, over TCP with an API token, or into a handler
// in this process.
//
//	c := client.Unix("/var/lib/posthorn/posthorn.sock")
//	defer c.Close()
//	var list struct{ Messages []json.RawMessage }
//	err := c.Do(ctx, http.MethodGet, "/v1/messages", nil, &list)
//
// What the API refuses is a *Problem, with the sentence and the hint that it gave. A request is never repeated by itself:
// whoever repeats a command gives it a key first (Once), since the answer that did not come may have been a yes.
package client
