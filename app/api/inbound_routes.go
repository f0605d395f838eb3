package api

import (
	"net/http"

	"github.com/posthorn/posthorn/app/inbound"
)

func (s *server) inboundRoutes() {
	add[inbound.Envelope, inbound.Taken](s, operation{method: http.MethodPost, path: "/v1/inbound/{source}", tag: "inbound", public: true, stages: true,
		summary: "Take an event from outside",
		description: "Signed as Standard Webhooks say (webhook-id, webhook-timestamp, webhook-signature) with the secret that the operator configured for the source. " +
			"An event is taken once: a repetition of its webhook-id is answered suppressed. What it may do follows from the trust in its record.",
	}, func(x *exchange, in inbound.Envelope) (reply, error) {
		taken, err := s.Inbound.Take(x.Context(), x.PathValue("source"), x.Header, x.body, in)
		return reply{http.StatusOK, taken}, err
	})
}
