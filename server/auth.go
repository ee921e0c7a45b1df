package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/auth"
)

// KeyPolicy says when callers must have an API key.
type KeyPolicy int

// When keys are required.
const (
	KeysOnceMade KeyPolicy = iota // as soon as the store has one, even a revoked one; the default
	KeysAlways
	KeysNever // every client that reaches the server is admitted
)

// caller is the origin of a request. Everything that the request touches is within the caller's scope.
type caller struct {
	scope     continuo.Scope
	keyID     string    // "" without a key
	sessionID string    // "" without a session
	keyEnds   time.Time // when the key expires; zero: never
	ends      time.Time // when the session expires; zero without one
}

// callerWith is the caller that has a key.
func callerWith(key auth.Key) caller {
	return caller{scope: continuo.Scope{ProjectID: key.ProjectID, UserID: key.UserID}, keyID: key.ID, keyEnds: key.ExpiresAt}
}

type callerKey struct{}

// withCaller adds the caller to the request's context for the handlers.
func withCaller(r *http.Request, caller caller) *http.Request {
	payer := continuo.Payer{ProjectID: caller.scope.ProjectID, UserID: caller.scope.UserID, KeyID: caller.keyID}
	return r.WithContext(context.WithValue(continuo.WithPayer(r.Context(), payer), callerKey{}, caller))
}

// callerOf returns the caller of an authenticated request. It panics for a request that was not authenticated.
func callerOf(r *http.Request) caller { return r.Context().Value(callerKey{}).(caller) }

// scopeOf returns the scope of an authenticated request's caller.
func scopeOf(r *http.Request) continuo.Scope { return callerOf(r).scope }

// authenticate finds the caller of a request, or returns an error. With an error it returns the caller of a revoked or
// expired key, too.
func (s *server) authenticate(r *http.Request, pattern string) (caller, error) {
	ctx, anonymous := r.Context(), caller{scope: continuo.Scope{ProjectID: s.options.Project}}
	operation := s.operations[pattern]
	if operation.Probe { // in every case: the store is not asked whether keys are required
		return anonymous, nil
	}
	token, err := tokenOf(r.Header)
	required, failure := s.requiresKey(ctx, token)
	if refused := s.guard.check(r, required); refused != nil {
		return anonymous, refused
	}
	switch {
	case operation.Public, s.pages[pattern]:
		return anonymous, nil
	case failure != nil:
		return anonymous, failure
	case !required:
		return anonymous, nil
	}
	found, err := s.identify(r, token, err)
	switch {
	case err != nil:
		return found, err
	case operation.Unbound && found.scope.UserID != "":
		return found, &api.Problem{
			Status: http.StatusForbidden, Type: api.Permission, Code: "user_key",
			Message: "the audit log is of the whole project: it takes a key that no user is bound to",
		}
	case operation.Figures && (found.scope.ProjectID != s.options.Project || found.scope.UserID != ""):
		return found, &api.Problem{
			Status: http.StatusForbidden, Type: api.Permission, Code: "not_your_figures",
			Message: "the figures are of all projects: they take a key of the server's own project that no user is bound to",
		}
	}
	return found, s.rateLimits.check(found.keyID, time.Now())
}

// identify finds the caller of a request that needs a key: by the key in its headers, of which tokenOf returned token and
// tokenError, or else by its session.
func (s *server) identify(r *http.Request, token string, tokenError error) (caller, error) {
	anonymous := caller{scope: continuo.Scope{ProjectID: s.options.Project}}
	session := sessionToken(r)
	switch {
	case tokenError != nil:
		return anonymous, tokenError
	case token == "" && session != "":
		return s.bySession(r, session)
	case token == "":
		return anonymous, unauthenticated("missing_api_key", "this server wants an API key: send it as Authorization: Bearer "+auth.Prefix+"…")
	case s.options.Keys == nil:
		return anonymous, unauthenticated("invalid_api_key", "this server has no API keys")
	}
	key, err := s.options.Keys.Check(r.Context(), token)
	if errors.Is(err, auth.ErrRefused) {
		err = unauthenticated("invalid_api_key", err.Error())
	}
	return callerWith(key), err
}

// requiresKey reports whether a request needs a key. Under KeysOnceMade, a request with one of our keys is always
// checked against it, even while others need none: without the check it would act in another project than the key's.
func (s *server) requiresKey(ctx context.Context, token string) (bool, error) {
	switch {
	case s.options.KeyPolicy == KeysNever:
		return false, nil
	case s.options.KeyPolicy == KeysAlways:
		return true, nil
	case s.options.Keys == nil:
		return false, nil
	case strings.HasPrefix(token, auth.Prefix):
		return true, nil
	}
	return s.options.Keys.InUse(ctx)
}

// tokenOf finds the key of a request, "" for none, in the headers that the clients of OpenAI, Anthropic, Azure and Google use.
// Clients that must have a key send any value; a key of ours takes precedence over those.
func tokenOf(header http.Header) (string, error) {
	var tokens []string
	for _, value := range header.Values("Authorization") {
		if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Bearer") {
			tokens = append(tokens, strings.TrimSpace(token))
		}
	}
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		tokens = append(tokens, header.Values(name)...)
	}
	if own := header.Get("X-Continuo-Key"); own != "" {
		tokens = []string{own} // the others are for the upstream
	}
	ours, other := "", ""
	for _, token := range tokens {
		if !strings.HasPrefix(token, auth.Prefix) {
			other = cmp.Or(other, token)
			continue
		}
		if ours != "" && ours != token {
			return ours, unauthenticated("invalid_api_key", "the request has two different API keys: send one")
		}
		ours = token
	}
	return cmp.Or(ours, other), nil
}

// unauthenticated is the problem of a request without a valid key.
func unauthenticated(code, message string) *api.Problem {
	return &api.Problem{Status: http.StatusUnauthorized, Type: api.Authentication, Code: code, Message: message}
}

// challenge is the header WWW-Authenticate of an answer with status 401 (RFC 6750).
func challenge(p *api.Problem) string {
	if p.Code != "missing_api_key" {
		return `Bearer error="invalid_token"`
	}
	return "Bearer"
}
