package api

import (
	"net/http"

	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/paging"
)

// destinationBody asks for a destination.
type destinationBody struct {
	Name        string   `json:"name" pattern:"^[a-z][a-z0-9-]{0,62}$" example:"shop"`
	Kind        string   `json:"kind" enum:"webhook,file,pull"`
	URL         string   `json:"url,omitempty" doc:"webhook: where deliveries are posted"`
	Path        string   `json:"path,omitempty" doc:"file: its path, in a folder that the configuration allows; a relative one lies in the folder files of the data folder"`
	Types       []string `json:"types" doc:"the event types that it gets; * stands for any characters" minItems:"1"`
	Concurrency *int     `json:"concurrency,omitempty" minimum:"1" doc:"deliveries at once"`
	Rate        float64  `json:"rate,omitempty" minimum:"0" maximum:"100000" doc:"attempts a second at the most; 0: the setting's"`
	Timeout     *string  `json:"timeout,omitempty" doc:"the bound of one attempt" example:"15s"`
	Order       *string  `json:"order,omitempty" enum:"block,skip" doc:"whether a dead letter holds back the later messages of its ordering key"`
	Tenant      *string  `json:"tenant,omitempty" doc:"the caller's own tenant; the machine's own user may name another"`
}

// pauseBody says why.
type pauseBody struct {
	Reason string `json:"reason,omitempty" maxLength:"500"`
}

// destinationPage is a part of the list, in the order of names.
type destinationPage struct {
	Destinations []destinations.View `json:"destinations"`
	Next         *string             `json:"next" doc:"the cursor of the next page; null: this is the last"`
	Freshness    mediator.Freshness  `json:"freshness"`
}

func (s *server) destinationRoutes() {
	one := []parameter{tenantParameter}
	add[destinationBody, destinations.Created](s, operation{
		method: http.MethodPost, path: "/v1/destinations", tag: "destinations", status: http.StatusCreated, summary: "Create a destination",
		description: "What is staged from then on reaches it. The answer to a webhook's creation holds its signing secret, shown this once.",
	}, func(x *exchange, in destinationBody) (reply, error) {
		if err := x.actFor(in.Tenant); err != nil {
			return reply{}, err
		}
		n := destinations.NewDestination{Name: in.Name, Kind: destinations.Kind(in.Kind), URL: in.URL, Path: in.Path, Types: in.Types, Rate: in.Rate}
		if in.Concurrency != nil {
			if n.Concurrency = *in.Concurrency; n.Concurrency < 1 {
				return reply{}, mediator.Violations{{Path: "/concurrency", Message: "must be a whole number from 1"}}.
					Refusal("invalid-destination", "This destination cannot be created.", "Leave concurrency out for the default.")
			}
		}
		if in.Timeout != nil {
			if n.Timeout = *in.Timeout; n.Timeout == "" {
				n.Timeout = "-" // given, and no duration
			}
		}
		if in.Order != nil {
			if n.Order = destinations.Order(*in.Order); n.Order == "" {
				n.Order = "-"
			}
		}
		created, err := s.Destinations.Create(x.Context(), n)
		return reply{http.StatusCreated, created}, err
	})
	add[nothing, destinationPage](s, operation{
		method: http.MethodGet, path: "/v1/destinations", tag: "destinations", summary: "List destinations, in the order of names",
		query: []parameter{limitParameter, cursorParameter, tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		limit, err := x.number("limit")
		if err == nil {
			limit, err = paging.Limit(limit)
		}
		if err != nil {
			return reply{}, err
		}
		after, err := paging.Place("destinations", x.query.Get("cursor"))
		if err != nil {
			return reply{}, err
		}
		found, err := s.Destinations.List(x.Context(), after, limit)
		page := destinationPage{Destinations: found.Destinations, Freshness: mediator.Immediate}
		if found.More {
			next := paging.Cursor("destinations", found.Destinations[len(found.Destinations)-1].Name)
			page.Next = &next
		}
		return reply{http.StatusOK, page}, err
	})
	add[nothing, destinations.View](s, operation{
		method: http.MethodGet, path: "/v1/destinations/{name}", tag: "destinations", summary: "Read a destination", query: one,
	}, func(x *exchange, _ nothing) (reply, error) {
		view, err := s.Destinations.Get(x.Context(), x.PathValue("name"))
		return reply{http.StatusOK, view}, err
	})
	add[nothing, destinations.Deleted](s, operation{
		method: http.MethodDelete, path: "/v1/destinations/{name}", tag: "destinations", summary: "Delete a destination", query: one,
		description: "Its pending deliveries become dead letters of the class cancelled.",
	}, func(x *exchange, _ nothing) (reply, error) {
		deleted, err := s.Destinations.Delete(x.Context(), x.PathValue("name"))
		return reply{http.StatusOK, deleted}, err
	})
	add[pauseBody, destinations.View](s, operation{
		method: http.MethodPost, path: "/v1/destinations/{name}/pause", tag: "destinations", summary: "Hold a destination's deliveries", query: one, optionalBody: true,
		description: "They stay pending and visible; attempts under way finish.",
	}, func(x *exchange, in pauseBody) (reply, error) {
		view, err := s.Destinations.Pause(x.Context(), x.PathValue("name"), in.Reason)
		return reply{http.StatusOK, view}, err
	})
	add[nothing, destinations.View](s, operation{
		method: http.MethodPost, path: "/v1/destinations/{name}/resume", tag: "destinations", summary: "Let a destination's deliveries flow again", query: one,
	}, func(x *exchange, _ nothing) (reply, error) {
		view, err := s.Destinations.Resume(x.Context(), x.PathValue("name"))
		return reply{http.StatusOK, view}, err
	})
}
