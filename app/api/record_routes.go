package api

import (
	"net/http"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
)

// recordSummary is a record as the list shows it.
type recordSummary struct {
	ID     string         `json:"id"`
	Kind   records.Kind   `json:"kind"`
	Title  string         `json:"title"`
	Origin records.Origin `json:"origin" enum:"built-in,overlay"`
}

// recordList is the records in effect.
type recordList struct {
	Records   []recordSummary    `json:"records"`
	Freshness mediator.Freshness `json:"freshness"`
}

func (s *server) recordRoutes() {
	add[nothing, recordList](s, operation{method: http.MethodGet, path: "/v1/records", tag: "records", summary: "List the records in effect, by kind"},
		func(x *exchange, _ nothing) (reply, error) {
			if _, err := access.Require(x.Context(), access.Viewer); err != nil {
				return reply{}, err
			}
			return reply{http.StatusOK, s.listRecords()}, nil
		})
	if s.Reload == nil {
		return
	}
	add[nothing, recordList](s, operation{method: http.MethodPost, path: "/v1/records/reload", tag: "records", summary: "Read the record files again",
		description: "From the answer on, what they declare may be staged. When one is wrong, everything stays as it was."},
		func(x *exchange, _ nothing) (reply, error) {
			if _, err := access.Require(x.Context(), access.Admin); err != nil {
				return reply{}, err
			}
			if err := s.Reload(x.Context()); err != nil {
				return reply{}, err
			}
			return reply{http.StatusOK, s.listRecords()}, nil
		})
}

func (s *server) listRecords() recordList {
	list := recordList{Records: []recordSummary{}, Freshness: mediator.Immediate}
	for _, r := range s.Records().All() {
		about := r.About()
		list.Records = append(list.Records, recordSummary{ID: about.ID, Kind: about.Kind, Title: about.Title, Origin: about.Origin})
	}
	return list
}
