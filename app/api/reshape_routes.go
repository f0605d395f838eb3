package api

import (
	"net/http"
	"time"

	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/mediator"
)

// changeBody holds what a destination gets anew.
type changeBody struct {
	URL         *string             `json:"url,omitempty" doc:"webhook: where deliveries are posted, pending ones too"`
	Path        *string             `json:"path,omitempty" doc:"file: its path, in a folder that the configuration allows; a relative one lies in the folder files of the data folder"`
	Types       []string            `json:"types,omitempty" doc:"the event types that it gets of what is staged from now on" minItems:"1"`
	Concurrency *int                `json:"concurrency,omitempty" minimum:"0" doc:"deliveries at once; 0: the setting's"`
	Rate        *float64            `json:"rate,omitempty" minimum:"0" maximum:"100000" doc:"attempts a second at the most; 0: the setting's"`
	Timeout     *string             `json:"timeout,omitempty" doc:"the bound of one attempt; empty: the setting's" example:"15s"`
	Order       *destinations.Order `json:"order,omitempty" enum:"block,skip" doc:"whether a dead letter holds back the later messages of its ordering key"`
}

// rotateBody says how long the old secret still signs.
type rotateBody struct {
	Overlap *string `json:"overlap,omitempty" doc:"how long deliveries are signed by the old secret beside the new one, 0s to 720h; left out: the setting's" example:"24h"`
}

// reshapeRoutes change what a destination is, and try it out.
func (s *server) reshapeRoutes() {
	own := []parameter{tenantParameter}
	add[changeBody, destinations.View](s, operation{
		method: http.MethodPatch, path: "/v1/destinations/{name}", tag: "destinations", summary: "Change a destination; what is left out stays", query: own,
	}, func(x *exchange, in changeBody) (reply, error) {
		view, err := s.Destinations.Alter(x.Context(), x.PathValue("name"), destinations.Change{URL: in.URL, Path: in.Path, Types: in.Types,
			Concurrency: in.Concurrency, Rate: in.Rate, Timeout: in.Timeout, Order: in.Order})
		return reply{http.StatusOK, view}, err
	})
	add[rotateBody, destinations.Created](s, operation{
		method: http.MethodPost, path: "/v1/destinations/{name}/rotate-secret", tag: "destinations", summary: "Give a webhook a new signing secret, shown this once",
		query: own, optionalBody: true,
		description: "The old one goes on signing beside it for a while, so that the receiver can change over when it likes.",
	}, func(x *exchange, in rotateBody) (reply, error) {
		var overlap *time.Duration
		if in.Overlap != nil {
			given, err := time.ParseDuration(*in.Overlap)
			if err != nil {
				return reply{}, mediator.Violations{{Path: "/overlap", Message: "must be a duration, such as 24h"}}.
					Refusal("invalid-overlap", "The secret cannot be rotated so.", "")
			}
			overlap = &given
		}
		rotated, err := s.Destinations.RotateSecret(x.Context(), x.PathValue("name"), overlap)
		return reply{http.StatusOK, rotated}, err
	})
	add[nothing, destinations.Trial](s, operation{
		method: http.MethodPost, path: "/v1/destinations/{name}/test", tag: "destinations", summary: "Send a destination a message made for trying it out", query: own,
		description: "Signed as always and of the type " + destinations.TrialType + ", past the queue, a pause and an open breaker. It is not stored and not retried.",
	}, func(x *exchange, _ nothing) (reply, error) {
		trial, err := s.Destinations.Try(x.Context(), x.PathValue("name"))
		return reply{http.StatusOK, trial}, err
	})
}
