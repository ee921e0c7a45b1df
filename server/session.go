package server

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/auth"
)

// cookieName is the name of the session's cookie. Browsers send cookies to all ports of a host, so the port is in the name:
// a session of another server of the machine is not replaced.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		return "continuo_session_" + port
	}
	return "continuo_session"
}

// sessionToken is the token of the request's session; "" for none.
func sessionToken(r *http.Request) string {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// bySession finds the caller of a request that has the cookie of a session. Unlike a key, a browser adds it to requests of
// any page of the same site, so that the request must be of this server's own page.
func (s *server) bySession(r *http.Request, token string) (caller, error) {
	anonymous := caller{scope: continuo.Scope{ProjectID: s.options.Project}}
	if !s.isTrustedPage(r) {
		return anonymous, &api.Problem{
			Status: http.StatusForbidden, Type: api.InvalidRequest, Code: "cross_origin", Param: "Origin",
			Message: "a session is for the page of this server only: another page may not use it",
		}
	}
	if s.options.Keys == nil {
		return anonymous, unauthenticated("invalid_session", "this server has no API keys")
	}
	key, session, err := s.options.Keys.CheckSession(r.Context(), token)
	found := callerWith(key)
	found.ends, found.sessionID = session.ExpiresAt, session.ID
	if errors.Is(err, auth.ErrSession) || errors.Is(err, auth.ErrRefused) {
		return found, unauthenticated("invalid_session", err.Error())
	}
	return found, err
}

// isTrustedPage reports whether a request was sent by the server's own page, or by one of a listed origin. A browser sends it
// the session only where both are of one site.
func (s *server) isTrustedPage(r *http.Request) bool {
	return s.cors.allows(r.Header.Get("Origin")) || isOwnPage(r)
}

// isOwnPage reports whether a request was sent by the server's own page, or by a person who opened its address. What
// changes something always has the header Origin. Browsers say themselves in Sec-Fetch-Site whether the origins are the same
// (also where a proxy changes Host), except over plain HTTP to other machines, where the hosts are compared.
func isOwnPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	origin := r.Header.Get("Origin")
	if !reads && (origin == "" || origin == "null") {
		return false
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "same-origin":
		return true
	case "none":
		return reads
	case "":
		parsed, err := url.Parse(origin)
		return origin == "" || err == nil && strings.EqualFold(parsed.Host, r.Host)
	}
	return false
}

// isSecure reports whether the page came over TLS, as the connection, a proxy or the browser says. A client that lies about
// it harms itself only.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// showSession says who the caller is, and does not refuse one who is nobody.
func (s *server) showSession(w http.ResponseWriter, r *http.Request, _ api.Nothing) error {
	token, tokenError := tokenOf(r.Header)
	required, err := s.requiresKey(r.Context(), token)
	if err != nil {
		return err
	}
	if !required {
		return writeJSON(w, http.StatusOK, api.CallerSession{Authenticated: true, ProjectID: s.options.Project})
	}
	found, err := s.identify(r, token, tokenError)
	var refused *api.Problem
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return writeJSON(w, http.StatusOK, api.CallerSession{Keys: true})
	case err != nil:
		return err
	}
	return writeJSON(w, http.StatusOK, shownCaller(found))
}

func shownCaller(c caller) api.CallerSession {
	return api.CallerSession{Keys: true, Authenticated: true, ProjectID: c.scope.ProjectID, UserID: c.scope.UserID, KeyID: c.keyID, ExpiresAt: c.ends}
}

// openSession opens a session for a key. The key is in the body: a page of another origin cannot send it by accident.
func (s *server) openSession(w http.ResponseWriter, r *http.Request, in api.SessionRequest) error {
	required, err := s.requiresKey(r.Context(), in.Key)
	switch {
	case err != nil:
		return err
	case !required || s.options.Keys == nil:
		return errKeysOff
	}
	key, session, token, err := s.options.Keys.OpenSession(r.Context(), strings.TrimSpace(in.Key), s.options.SessionLife)
	if errors.Is(err, auth.ErrRefused) {
		return unauthenticated("invalid_api_key", err.Error())
	}
	if err != nil {
		return err
	}
	if old := sessionToken(r); old != "" && s.isTrustedPage(r) { // the browser forgets it now
		if err := s.options.Keys.CloseSession(r.Context(), old); err != nil {
			return err
		}
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: token, Path: "/", Expires: session.ExpiresAt, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isSecure(r),
	})
	opened := callerWith(key)
	opened.ends = session.ExpiresAt
	return writeJSON(w, http.StatusCreated, shownCaller(opened))
}

// closeSession ends the session of the cookie.
func (s *server) closeSession(w http.ResponseWriter, r *http.Request, _ api.Nothing) error {
	if token := sessionToken(r); token != "" && s.options.Keys != nil {
		if !s.isTrustedPage(r) {
			return &api.Problem{
				Status: http.StatusForbidden, Type: api.InvalidRequest, Code: "cross_origin", Param: "Origin",
				Message: "a session is ended by the page of this server only",
			}
		}
		if err := s.options.Keys.CloseSession(r.Context(), token); err != nil {
			return err
		}
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isSecure(r)})
	w.WriteHeader(http.StatusNoContent)
	return nil
}
