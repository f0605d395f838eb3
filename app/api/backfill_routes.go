package api

import (
	"net/http"

	"github.com/posthorn/posthorn/app/destinations"
)

// backfillBody bounds a backfill.
type backfillBody struct {
	From *string `json:"from,omitempty" format:"date-time" doc:"only messages that occurred at this time or later"`
	To   *string `json:"to,omitempty" format:"date-time" doc:"only messages that occurred before this time"`
}

func (s *server) backfillRoutes() {
	own := []parameter{tenantParameter}
	add[backfillBody, destinations.Backfill](s, operation{
		method: http.MethodPost, path: "/v1/destinations/{name}/backfill", tag: "destinations", status: http.StatusAccepted, optionalBody: true, keyed: true, stages: true,
		summary: "Give a destination the kept messages of the past that its types match", query: own,
		description: "It is held until the last is in, so that what has an ordering key comes in order. What it has a delivery of already it gets no second time; " +
			"what no route wanted moves over to it. The work goes on in the background, and after a restart.",
	}, func(x *exchange, in backfillBody) (reply, error) {
		receipt, err := x.receipt()
		if err != nil {
			return reply{}, err
		}
		from, err := givenTime(in.From, "/from")
		if err != nil {
			return reply{}, err
		}
		to, err := givenTime(in.To, "/to")
		if err != nil {
			return reply{}, err
		}
		answer, err := s.Destinations.Backfill(x.Context(), x.PathValue("name"), from, to, receipt)
		return x.answer(answer), err
	})
	add[nothing, destinations.Backfill](s, operation{
		method: http.MethodGet, path: "/v1/destinations/{name}/backfill", tag: "destinations", summary: "How a destination's latest backfill stands", query: own,
	}, func(x *exchange, _ nothing) (reply, error) {
		found, err := s.Destinations.BackfillOf(x.Context(), x.PathValue("name"))
		return reply{http.StatusOK, found}, err
	})
}
