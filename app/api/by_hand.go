package api

import (
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"
)

const eventsPath = "/v1/events"

// byHand makes the entries of the OpenAPI document for routes that others serve, by their patterns: anew for each API, since huma writes to what it
// is given.
func byHand() map[string]*huma.Operation {
	explode := true
	return map[string]*huma.Operation{
		eventsPath: {
			OperationID: "get-v1-events", Method: http.MethodGet, Path: eventsPath, Tags: []string{"live"}, Summary: "Follow live what changes, as server-sent events",
			Description: "The events are hello (epoch, heartbeat, life span), notification (a topic changed: ask the query that owns the truth), reset (what was missed cannot be said: ask anew) " +
				"and bye (why the server ends the stream: a planned end, or access that is over; come back, and the status says whether it is). Notifications are hints: they may be lost, and only the newest of a topic has to arrive. A stream ends with the access of whoever opened it.",
			Parameters: []*huma.Param{
				{Name: "topic", In: "query", Required: true, Explode: &explode, Description: "backlog, messages/{id} or lending/desk; may be there several times",
					Schema: &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}},
				{Name: "tenant", In: "query", Description: tenantParameter.description, Schema: &huma.Schema{Type: huma.TypeString}},
				{Name: "Last-Event-ID", In: "header", Description: "the id of the latest event, to go on after it", Schema: &huma.Schema{Type: huma.TypeString}},
			},
			Responses: map[string]*huma.Response{
				"200":     {Description: "The stream", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}},
				"default": refused(),
			},
		},
		"GET /metrics": {
			OperationID: "get-metrics", Method: http.MethodGet, Path: "/metrics", Tags: []string{"about"}, Summary: "Read the metrics, for Prometheus",
			Responses: map[string]*huma.Response{
				"200":     {Description: "The metrics", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}},
				"default": refused(),
			},
		},
	}
}

// refused is the entry for every answer that is a problem.
func refused() *huma.Response {
	return &huma.Response{Description: "A refusal", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}}}
}

// forTenant serves a route of others to a caller who acts for the tenant that the query names; they themselves know of no such parameter.
func (s *server) forTenant(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err == nil && len(query["tenant"]) == 1 {
			x := &exchange{Request: r, w: w, api: s}
			tenant := query.Get("tenant")
			if err := x.actFor(&tenant); err != nil {
				s.fail(w, r, err)
				return
			}
			r = x.Clone(x.Context())
			query.Del("tenant")
			r.URL.RawQuery = query.Encode()
		}
		next.ServeHTTP(w, r)
	})
}
