package realtime

import (
	"encoding/json"
	"net/http"
)

// problem is an answer of RFC 9457. code is stable, and for programs; detail is a sentence for whoever sent the request, and
// says what to do. Neither repeats what was received.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p problem) write(w http.ResponseWriter) {
	body, _ := json.Marshal(p)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

var (
	problemMethod = problem{405, "method-not-allowed", "Method not allowed",
		"Live updates are one-way: open the stream with GET. To change topics, open another stream."}
	problemBody = problem{400, "body-not-allowed", "Body not allowed",
		"The stream takes no request body. Name topics in the query: ?topic=backlog&topic=alerts."}
	problemAccept = problem{406, "not-acceptable", "Not acceptable",
		"This resource is an event stream: send Accept: text/event-stream, or no Accept at all."}
	problemTooLarge = problem{431, "request-too-large", "Request too large",
		"The request line and headers are larger than this server receives. Listen to fewer topics over one connection."}
	problemQuery = problem{400, "query-malformed", "Malformed query",
		"The query is not URL-encoded. Encode topics, and repeat the parameter for each: ?topic=backlog&topic=alerts."}
	problemParameter = problem{400, "parameter-unknown", "Unknown parameter",
		"The only parameter is topic, repeated for each topic: ?topic=backlog&topic=alerts."}
	problemNoTopic = problem{400, "topic-missing", "No topic",
		"Name at least one topic: ?topic=backlog."}
	problemTopic = problem{400, "topic-invalid", "Invalid topic",
		"A topic is one or more segments joined by slashes, without spaces, control characters or asterisks: messages/018f."}
	problemTopicLong = problem{400, "topic-too-long", "Topic too long",
		"A topic has at most 256 bytes."}
	problemTopics = problem{400, "topics-too-many", "Too many topics",
		"One connection listens to fewer topics than were asked for. Listen only to what the screen shows."}
	problemUnauthenticated = problem{401, "unauthenticated", "Not authenticated",
		"Log in again, or send a valid API token: Authorization: Bearer …. Credentials are never taken from the URL."}
	problemForbidden = problem{403, "topic-forbidden", "Topic forbidden",
		"At least one topic does not exist or is not open to you. Check the names, and what your role may read."}
	problemAuthorization = problem{503, "authorization-unavailable", "Authorization unavailable",
		"The server could not check your access just now. Try again after the time in Retry-After."}
	problemUnsupported = problem{500, "streaming-unsupported", "Streaming unsupported",
		"A handler in front of this one hides the connection from it. Operators: its ResponseWriter needs an Unwrap method."}
	problemFull = problem{429, "connections-exhausted", "Too many connections",
		"The server holds as many live connections as it may. Try again after the time in Retry-After."}
	problemUserFull = problem{429, "connections-exhausted-user", "Too many connections of yours",
		"Your user holds as many live connections as it may. Close some, or try again after the time in Retry-After."}
	problemAddressFull = problem{429, "connections-exhausted-address", "Too many connections from your address",
		"Your address holds as many live connections as it may. Close some, or try again after the time in Retry-After."}
	problemDraining = problem{503, "shutting-down", "Shutting down",
		"The server is about to stop or restart. Try again after the time in Retry-After."}
)
