package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

const requestIDHeader = "X-Request-Id"

// wrap puts the guards around the routes, the outermost last.
func (s *server) wrap() http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		(&Problem{Status: http.StatusForbidden, Code: "cross-origin", Detail: "Another site's page sent this request.", Hint: "Send it from Posthorn's own origin, or from a program."}).write(w)
	}))
	return s.observe(s.guardHost(cross.Handler(s.authenticate(s.bounded(s.mux)))))
}

// bounded keeps one session from taking everybody's readers.
func (s *server) bounded(next http.Handler) http.Handler {
	if s.Bound == nil {
		return next
	}
	return s.Bound(next, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		(&Problem{Status: http.StatusTooManyRequests, Code: "too-many-queries", Detail: "This session has more queries waiting than it may.",
			Hint: "Wait for answers before asking more; the setting live-refreshes is the bound.", retryAfter: "1"}).write(w)
	}))
}

var (
	requestIDForm   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	traceparentForm = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// observe names the request, keeps a panic from the connection, and logs the request without its content.
func (s *server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get(requestIDHeader)
		if !requestIDForm.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		header := w.Header()
		header.Set(requestIDHeader, id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Cache-Control", "no-store")
		origin := map[string]string{"correlation": id}
		if trace := r.Header.Get("Traceparent"); traceparentForm.MatchString(trace) {
			origin["traceparent"] = trace
		}
		ctx := mediator.WithOrigin(r.Context(), origin)
		seen := &sight{}
		out := &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p)
				}
				s.Logger.Error("request panicked", "request_id", id, "panic", p, "stack", string(debug.Stack()))
				if out.status != 0 {
					panic(http.ErrAbortHandler) // half an answer must not look whole
				}
				problem, _ := problemOf(errPanicked)
				problem.write(out)
			}
			s.Logger.Info("request", "request_id", id, "method", r.Method, "path", clip(r.URL.Path), "status", out.status, "bytes", out.bytes,
				"duration", time.Since(began), "actor", seen.actor)
		}()
		next.ServeHTTP(out, r.WithContext(context.WithValue(ctx, sightKey{}, seen)))
	})
}

var errPanicked = errors.New("the request panicked")

// sight is what the inner guards tell the log.
type sight struct{ actor string }

type sightKey struct{}

func clip(path string) string {
	const most = 200
	if len(path) > most {
		return strings.ToValidUTF8(path[:most], "") + "…"
	}
	return path
}

// guardHost refuses names that are not ours, so that a page whose name was bound to this address reaches nothing.
func (s *server) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, vouched := access.From(r.Context()); !vouched && !s.ours(r) {
			(&Problem{Status: http.StatusMisdirectedRequest, Code: "unknown-host", Detail: "This Host is not one of Posthorn's.",
				Hint: "Use localhost, the address that it listens on, or a name that the operator's configuration lists."}).write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) ours(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || slices.ContainsFunc(s.Hosts, func(own string) bool { return strings.EqualFold(own, host) }) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if addr.IsLoopback() {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	dialled, err := netip.ParseAddrPort(local.String())
	return err == nil && dialled.Addr().Unmap() == addr.Unmap()
}

// authenticate finds the caller: the listener has vouched for it, or it shows an API token, or somebody else knows it.
func (s *server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := s.mux.Handler(r)
		by, err := s.caller(r)
		switch {
		case err == nil:
			if seen, ok := r.Context().Value(sightKey{}).(*sight); ok {
				seen.actor = by.Actor
			}
			r = r.WithContext(access.With(r.Context(), by))
		case !s.public[pattern]:
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) caller(r *http.Request) (access.Principal, error) {
	if by, ok := access.From(r.Context()); ok {
		return by, nil
	}
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		if s.Sessions != nil {
			return s.Sessions.Identify(r)
		}
		return access.Principal{}, access.ErrUnauthenticated
	}
	scheme, token, ok := strings.Cut(given[0], " ")
	if !ok || len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return access.Principal{}, access.ErrUnauthenticated
	}
	return s.Tokens.Verify(r.Context(), strings.TrimSpace(token))
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Flush serves handlers that ask for an http.Flusher.
func (r *recorder) Flush() { _ = r.FlushError() }

// FlushError serves http.ResponseController, which would take Flush for a success: a stream has to hear that its client takes nothing.
func (r *recorder) FlushError() error { return http.NewResponseController(r.ResponseWriter).Flush() }

// Unwrap serves http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
