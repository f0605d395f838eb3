package session

import (
	"net"
	"net/http"
)

// cookieName is bound to the host on TLS. Elsewhere it carries the port, since browsers share cookies between the ports of a host, and two
// Posthorns on one machine would sign each other's users out. Without TLS the cookie cannot be Secure: some browsers would then not keep it, even on the loopback.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-posthorn"
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "posthorn-" + port
	}
	return "posthorn"
}

func setCookie(w http.ResponseWriter, r *http.Request, text string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: text, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}
