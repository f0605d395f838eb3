package session

import (
	"net/http"

	"github.com/posthorn/posthorn/app/access"
)

// SignIn opens a session for whoever shows a setup link or an API token, and sets its cookie. A session that the browser had ends: a new one
// never takes over the name of an old one.
func (s *Sessions) SignIn(w http.ResponseWriter, r *http.Request, link, token string) (access.Principal, error) {
	proved, err := s.prove(r.Context(), link, token)
	if err != nil {
		return proved, err
	}
	if before, err := s.Identify(r); err == nil {
		if err := s.End(r.Context(), before, before.SessionID); err != nil {
			return before, err
		}
	}
	p, text, err := s.open(r.Context(), proved)
	if err != nil {
		return p, err
	}
	setCookie(w, r, text, int(s.config.Absolute.Seconds()))
	return p, nil
}

// SignOut ends the caller's session and takes its cookie back.
func (s *Sessions) SignOut(w http.ResponseWriter, r *http.Request, by access.Principal) error {
	if by.SessionID != "" {
		if err := s.End(r.Context(), by, by.SessionID); err != nil {
			return err
		}
	}
	setCookie(w, r, "", -1)
	return nil
}
