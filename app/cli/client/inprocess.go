package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// inProcess is a transport into a handler of this process.
type inProcess struct{ handler http.Handler }

// RoundTrip runs the handler to its end and returns what it wrote.
func (t inProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	served := request.Clone(request.Context())
	served.RequestURI = request.URL.RequestURI()
	served.Host = request.URL.Host
	if served.Body == nil {
		served.Body = http.NoBody
	}
	defer served.Body.Close()
	answer := &answer{header: http.Header{}}
	t.handler.ServeHTTP(answer, served)
	answer.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status)), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: request,
	}, nil
}

// answer is a response writer that keeps what it is given.
type answer struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

// WriteHeader takes the first final status, as a server does.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status, a.sent = status, a.header.Clone()
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
