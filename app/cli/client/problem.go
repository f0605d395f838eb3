package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// Problem is what the API answers instead of a result (RFC 9457).
type Problem struct {
	Title      string  `json:"title"`
	Status     int     `json:"status"`
	Code       string  `json:"code"`
	Detail     string  `json:"detail"`
	Advice     string  `json:"hint"`
	Places     []Place `json:"errors"`
	RetryAfter string  `json:"-"` // the header, as it came
}

// Place is one value of a request that is wrong.
type Place struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Error is the sentence, and a line for each place.
func (p *Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Detail != "":
		b.WriteString(p.Detail)
	case p.Title != "":
		b.WriteString(p.Title)
	default:
		fmt.Fprintf(&b, "the server answered %d", p.Status)
	}
	for _, place := range p.Places {
		b.WriteString("\n  ")
		if place.Path != "" {
			b.WriteString(place.Path + ": ")
		}
		b.WriteString(place.Message)
	}
	return b.String()
}

// Hint says what to do.
func (p *Problem) Hint() string {
	switch {
	case p.Advice != "":
		return p.Advice
	case p.RetryAfter != "":
		return "try again in " + p.RetryAfter + " s"
	case p.Status == http.StatusUnauthorized:
		return "set POSTHORN_TOKEN to an API token that `posthorn tokens create` printed"
	default:
		return ""
	}
}

// problemOf reads a refusal; an answer that is no problem, as from a proxy in between, becomes one.
func problemOf(response *http.Response, body []byte) *Problem {
	problem := &Problem{}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, problem) != nil {
		problem = &Problem{Detail: fmt.Sprintf("the server answered %s, and it does not look like Posthorn", response.Status)}
	}
	problem.Status = response.StatusCode
	problem.RetryAfter = response.Header.Get("Retry-After")
	return problem
}
