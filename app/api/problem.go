package api

import (
	"encoding/json"
	"net/http"
)

// Problem is how every refusal is written (RFC 9457).
type Problem struct {
	Type   string  `json:"type" example:"about:blank"`
	Title  string  `json:"title" doc:"what the status means"`
	Status int     `json:"status"`
	Code   string  `json:"code" doc:"stable, for programs" example:"version-conflict"`
	Detail string  `json:"detail" doc:"what is wrong, in a sentence"`
	Hint   string  `json:"hint,omitempty" doc:"what to do"`
	Errors []Place `json:"errors,omitempty" doc:"the places that are wrong"`
	// CurrentVersion belongs to version-conflict.
	CurrentVersion *int64 `json:"current_version,omitempty" doc:"version-conflict: the version that the document has; 0: it does not exist"`

	retryAfter string
	allow      string
}

// Place is a part of a request that is wrong.
type Place struct {
	Path    string `json:"path" doc:"a JSON Pointer into the body, or the name of a parameter"`
	Message string `json:"message"`
}

func (p *Problem) write(w http.ResponseWriter) {
	p.Type = "about:blank"
	if p.Title = http.StatusText(p.Status); p.Title == "" {
		p.Title = "Problem"
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Del("Content-Disposition")
	if p.retryAfter != "" {
		header.Set("Retry-After", p.retryAfter)
	}
	if p.allow != "" {
		header.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="posthorn"`)
	}
	w.WriteHeader(p.Status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(p) // the caller is gone if this fails
}
