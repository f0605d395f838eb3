package api

import (
	"encoding/json"
	"net/http"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
)

// RecordSummary is a record as the list shows it.
type RecordSummary struct {
	ID     string         `json:"id"`
	Kind   records.Kind   `json:"kind"`
	Title  string         `json:"title"`
	Origin records.Origin `json:"origin" enum:"built-in,overlay"`
}

// recordList is the records in effect.
type recordList struct {
	Records   []RecordSummary    `json:"records"`
	Freshness mediator.Freshness `json:"freshness"`
}

// recordDetail is one record with what it names and what names it.
type recordDetail struct {
	RecordSummary
	File         string               `json:"file" doc:"below the folder of its origin"`
	FrontMatter  json.RawMessage      `json:"front_matter" doc:"what the product reads"`
	Body         string               `json:"body" doc:"what people read, as Markdown"`
	HTML         string               `json:"html" doc:"the body for a page: no raw HTML, no scripts; what names another record is a link to /records/{kind}/{id}"`
	References   []records.Mention    `json:"references" doc:"the records that it names"`
	ReferencedBy []records.Mention    `json:"referenced_by" doc:"the records that name it"`
	Setting      *records.SettingView `json:"setting,omitempty" doc:"of a setting, what is in effect"`
	Freshness    mediator.Freshness   `json:"freshness"`
}

// settingList is every setting in effect.
type settingList struct {
	Settings  []records.SettingView `json:"settings"`
	Freshness mediator.Freshness    `json:"freshness"`
}

// conformanceTable is how the provisions are met.
type conformanceTable struct {
	Provisions []records.Provision `json:"provisions"`
	Freshness  mediator.Freshness  `json:"freshness"`
}

var noRecord = &mediator.Refusal{Kind: mediator.Missing, Code: "no-record", Sentence: "There is no such record.", Hint: "GET /v1/records lists them."}

func (s *server) recordRoutes() {
	look[recordList](s, operation{path: "/v1/records", summary: "List the records in effect, by kind"},
		func(*exchange) (any, error) { return s.listRecords(), nil })
	look[recordDetail](s, operation{path: "/v1/records/{kind}/{id}", summary: "Read a record, with the records that it names and that name it"},
		func(x *exchange) (any, error) {
			return s.readRecord(records.Ref{Kind: records.Kind(x.PathValue("kind")), ID: x.PathValue("id")})
		})
	look[settingList](s, operation{path: "/v1/settings", summary: "List the settings in effect, with their bounds and where each value comes from"},
		func(*exchange) (any, error) {
			list := settingList{Settings: []records.SettingView{}, Freshness: mediator.Immediate}
			for _, setting := range s.Records().Settings() {
				list.Settings = append(list.Settings, setting.View())
			}
			return list, nil
		})
	look[conformanceTable](s, operation{path: "/v1/conformance", summary: "Say for each provision how it is met, and by which tests that is shown"},
		func(*exchange) (any, error) {
			return conformanceTable{Provisions: records.Conformance(), Freshness: mediator.Immediate}, nil
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

// look serves a query of the records, for every role: they say what the product does, and hold nothing of anybody's.
func look[Out any](s *server, op operation, serve func(*exchange) (any, error)) {
	op.method, op.tag = http.MethodGet, "records"
	add[nothing, Out](s, op, func(x *exchange, _ nothing) (reply, error) {
		if _, err := access.Require(x.Context(), access.Viewer); err != nil {
			return reply{}, err
		}
		body, err := serve(x)
		return reply{http.StatusOK, body}, err
	})
}

func summaryOf(r records.Record) RecordSummary {
	about := r.About()
	return RecordSummary{ID: about.ID, Kind: about.Kind, Title: about.Title, Origin: about.Origin}
}

func (s *server) listRecords() recordList {
	list := recordList{Records: []RecordSummary{}, Freshness: mediator.Immediate}
	for _, r := range s.Records().All() {
		list.Records = append(list.Records, summaryOf(r))
	}
	return list
}

func (s *server) readRecord(ref records.Ref) (recordDetail, error) {
	set := s.Records()
	record, ok := set.Get(ref)
	if !ok {
		return recordDetail{}, noRecord
	}
	about := record.About()
	front, err := about.FrontMatter()
	if err != nil {
		return recordDetail{}, err
	}
	html, err := set.HTML(about.Body, func(to records.Ref) string { return "/records/" + to.String() })
	if err != nil {
		return recordDetail{}, err
	}
	detail := recordDetail{RecordSummary: summaryOf(record), File: about.File, FrontMatter: front, Body: about.Body, HTML: html,
		References: set.References(record), ReferencedBy: set.ReferencedBy(ref), Freshness: mediator.Immediate}
	if setting, ok := record.(*records.Setting); ok {
		view := setting.View()
		detail.Setting = &view
	}
	return detail, nil
}
