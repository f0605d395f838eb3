package api

import (
	"net/http"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/alerts"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// alertList is what is wrong now, and who is told of it.
type alertList struct {
	Alerts    []alerts.Alert     `json:"alerts" doc:"raised now"`
	Receiver  *alertReceiver     `json:"receiver,omitempty" doc:"who is told; left out: posthorn.yaml names nobody, or it is another tenant's"`
	Freshness mediator.Freshness `json:"freshness"`
}

// alertReceiver is the destination that the operator named.
type alertReceiver struct {
	Destination string `json:"destination"`
	Waiting     int    `json:"waiting" doc:"changes that it has not been told of yet"`
	Failure     string `json:"failure,omitempty" doc:"why the latest attempt to tell it failed"`
}

// told is the answer to telling again.
type told struct {
	Alerts int `json:"alerts" doc:"how many it is told of"`
}

var errNobodyTold = &mediator.Refusal{Kind: mediator.Conflict, Code: "no-receiver", Sentence: "Nobody is named who would be told of alerts.",
	Hint: "Write alerts: {destination: NAME} into posthorn.yaml, and start again."}

func (s *server) alertRoutes() {
	add[nothing, alertList](s, operation{method: http.MethodGet, path: "/v1/alerts", tag: "alerts", summary: "What is wrong now: the thresholds that are breached, with what to do",
		query: []parameter{tenantParameter}, description: "An alert is raised after alert-raise-after of breach, and cleared after alert-clear-after below alert-clear-below of its threshold."},
		func(x *exchange, _ nothing) (reply, error) {
			by, err := access.Require(x.Context(), access.Viewer)
			if err != nil {
				return reply{}, err
			}
			list := alertList{Alerts: s.alertsOf(by.Tenant), Freshness: mediator.Immediate}
			if s.Notifier != nil && by.Tenant == outbox.MainTenant {
				list.Receiver = &alertReceiver{Destination: s.AlertDestination}
				list.Receiver.Waiting, list.Receiver.Failure = s.Notifier.Standing()
				if !by.Role.Allows(access.Operator) && list.Receiver.Failure != "" {
					list.Receiver.Failure = "the latest attempt failed"
				}
			}
			return reply{http.StatusOK, list}, nil
		})
	add[nothing, told](s, operation{method: http.MethodPost, path: "/v1/alerts/tell", tag: "alerts", summary: "Tell the receiver again of what is wrong now"},
		func(x *exchange, _ nothing) (reply, error) {
			by, err := access.Require(x.Context(), access.Operator)
			switch {
			case err != nil:
				return reply{}, err
			case s.Notifier == nil || by.Tenant != outbox.MainTenant:
				return reply{}, errNobodyTold
			}
			raised := s.Alerts.Raised()
			for _, alert := range raised {
				s.Notifier.Tell(alert)
			}
			return reply{http.StatusOK, told{len(raised)}}, nil
		})
}

// alertsOf are those of a tenant's handlers; the main tenant sees those of the store, too.
func (s *server) alertsOf(tenant outbox.TenantID) []alerts.Alert {
	list := []alerts.Alert{}
	for _, alert := range s.Alerts.Raised() {
		if alert.Tenant == tenant {
			list = append(list, alert)
		}
	}
	return list
}
