package api

import (
	"net/http"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

// signInBody is a proof of who signs in.
type signInBody struct {
	Setup string `json:"setup,omitempty" doc:"the secret of a one-time setup link"`
	Token string `json:"token,omitempty" doc:"an API token"`
}

// maxProof bounds a proof: anybody may send one.
const maxProof = 4 << 10

// sessionView is who the caller is.
type sessionView struct {
	Actor     string             `json:"actor"`
	Tenant    string             `json:"tenant"`
	Role      string             `json:"role"`
	ExpiresAt *time.Time         `json:"expires_at,omitempty"`
	Modules   []string           `json:"modules" doc:"what is switched on beside what is always there: lending"`
	Freshness mediator.Freshness `json:"freshness"`
}

// linkView is a setup link.
type linkView struct {
	URL       string    `json:"url" doc:"under the address that the program listens on; behind a proxy, put its own name before the path"`
	ExpiresAt time.Time `json:"expires_at"`
}

// endedSessions says how many sessions were ended.
type endedSessions struct {
	Ended int `json:"ended"`
}

func (s *server) viewOf(by access.Principal) sessionView {
	v := sessionView{Actor: by.Actor, Tenant: string(by.Tenant), Role: string(by.Role), Modules: []string{}, Freshness: mediator.Immediate}
	if s.Lending != nil {
		v.Modules = append(v.Modules, "lending")
	}
	if !by.ExpiresAt.IsZero() {
		v.ExpiresAt = &by.ExpiresAt
	}
	return v
}

func (s *server) sessionRoutes() {
	add[signInBody, sessionView](s, operation{
		method: http.MethodPost, path: "/v1/session", tag: "session", status: http.StatusCreated, public: true, most: maxProof, summary: "Sign a browser in",
		description: "By the secret of a one-time setup link, or by an API token. The answer sets the session's cookie.",
	}, func(x *exchange, in signInBody) (reply, error) {
		if (in.Setup == "") == (in.Token == "") {
			return reply{}, mediator.Violations{{Path: "", Message: "must have either setup or token"}}.Refusal("invalid", "The request proves nobody.", "")
		}
		by, err := s.Sessions.SignIn(x.w, x.Request, in.Setup, in.Token)
		return reply{http.StatusCreated, s.viewOf(by)}, err
	})
	add[nothing, sessionView](s, operation{method: http.MethodGet, path: "/v1/session", tag: "session", summary: "Say who the caller is"},
		func(x *exchange, _ nothing) (reply, error) {
			by, err := access.Require(x.Context(), access.Viewer)
			return reply{http.StatusOK, s.viewOf(by)}, err
		})
	add[nothing, bytesOf](s, operation{
		method: http.MethodDelete, path: "/v1/session", tag: "session", status: http.StatusNoContent, summary: "Sign the browser out",
		description: "The session ends with this answer, and so do its live streams.",
	}, func(x *exchange, _ nothing) (reply, error) {
		by, err := access.Require(x.Context(), access.Viewer)
		if err == nil {
			err = s.Sessions.SignOut(x.w, x.Request, by)
		}
		return reply{http.StatusNoContent, []byte{}}, err
	})
	add[nothing, endedSessions](s, operation{
		method: http.MethodDelete, path: "/v1/session/others", tag: "session", summary: "Sign the same person out everywhere else",
	}, func(x *exchange, _ nothing) (reply, error) {
		by, err := access.Require(x.Context(), access.Viewer)
		if err != nil {
			return reply{}, err
		}
		n, err := s.Sessions.EndOthers(x.Context(), by)
		return reply{http.StatusOK, endedSessions{n}}, err
	})
	add[nothing, linkView](s, operation{
		method: http.MethodPost, path: "/v1/session/links", tag: "session", status: http.StatusCreated, summary: "Make a one-time link that signs a browser in",
		description: "It signs in as the caller, once, within a quarter of an hour.", query: []parameter{tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		by, err := access.Require(x.Context(), access.Admin)
		if err != nil {
			return reply{}, err
		}
		text, expires := s.Sessions.Links.New(by)
		return reply{http.StatusCreated, linkView{URL: s.URL() + "/setup#token=" + text, ExpiresAt: expires.UTC().Truncate(time.Microsecond)}}, nil
	})
}
