package api

import (
	"context"
	"net/http"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
)

// sessionOperations are those of credentials; only an adapter that knows its callers can carry them out.
func (s *Service) sessionOperations() []Operation {
	const session, keys = "/api/session", "/api/keys"
	const tag = "keys"
	return []Operation{
		handled[Nothing, CallerSession](Operation{
			ID: "showSession", Method: "GET", Path: session, Tag: tag, Summary: "show whether keys are needed, and who the caller is",
			Description: "Never refused for the lack of a key.",
			Public:      true, Answers: answers(ok("The caller.")),
		}),
		handled[SessionRequest, CallerSession](Operation{
			ID: "openSession", Method: "POST", Path: session, Tag: tag, Summary: "open a session of a browser with a key",
			Description: "The answer sets a cookie that scripts cannot read (`HttpOnly`, `SameSite=Strict`, and `Secure` where the page came " +
				"over TLS). Until `expires_at` it has the rights of the key, on every replica, and only for the page of this server: " +
				"requests that change something need its own `Origin`. It ends with `DELETE`, and with the key.",
			Public: true, Answers: answers(created("The session is open."), failing(http.StatusConflict, "No caller needs a key (`keys_not_required`).")),
		}),
		handled[Nothing, None](Operation{
			ID: "closeSession", Method: "DELETE", Path: session, Tag: tag, Summary: "end the session of the cookie",
			Description: "Also where there is none, or it has ended. Other replicas refuse it within five seconds.",
			Public:      true, Answers: answers(Answer{Status: http.StatusNoContent, Description: "It has ended, and the cookie is removed."}),
		}),
		handled[Nothing, All[auth.Key]](Operation{
			ID: "listKeys", Method: "GET", Path: keys, Tag: tag, Summary: "list the API keys of the project, without their secrets",
			Description: "A key that is bound to a user sees that user's. The oldest comes first.",
			Answers:     answers(ok("All keys, also those that were revoked or have expired.")),
		}),
		handled[KeyRequest, CreatedKey](Operation{
			ID: "createKey", Method: "POST", Path: keys, Tag: tag, Summary: "make an API key for the caller's project",
			Description: "A key that is bound to a user makes keys of that user only, and none outlives the key that made it. Where no " +
				"caller needs a key, none is made: the first one is made with `continuo keys create`.",
			Answers: answers(created("The key, and its text, which is not shown again."), failing(http.StatusConflict, "No caller needs a key (`keys_not_required`).")),
		}),
		handled[KeyPath, auth.Key](Operation{
			ID: "revokeKey", Method: "DELETE", Path: keys + "/{key}", Tag: tag, Summary: "revoke an API key",
			Description: "Its sessions end with it. Every replica refuses them within five seconds.",
			Answers:     answers(ok("The key, with `revoked_at`.")),
		}),
	}
}

// handled makes a row of an operation that an adapter carries out with the input decoded.
func handled[In, Out any](row Operation) Operation {
	return define(row, (func(context.Context, continuo.Scope, In) (Out, error))(nil))
}

// SessionRequest is the input of OpenSession.
type SessionRequest struct {
	// An API key, `ctn_…`.
	Key string `json:"key" doc:"minLength=1" maxLength:"200"`
}

// CallerSession says who a caller is.
type CallerSession struct {
	// Whether callers need a key.
	Keys bool `json:"keys"`
	// Whether the caller may use the API: no key is needed, or the request has a valid one or the cookie of a session.
	Authenticated bool `json:"authenticated"`
	// The project that the caller acts in; empty where it is not authenticated.
	ProjectID string `json:"project_id"`
	// The user that the key is bound to.
	UserID string `json:"user_id,omitempty"`
	// The id of the key.
	KeyID string `json:"key_id,omitempty"`
	// When the session ends; absent without one.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// KeyRequest is the input of CreateKey.
type KeyRequest struct {
	// What the key is for.
	Name string `json:"name,omitempty" maxLength:"100"`
	// Binds the key to a user: it reaches this user's conversations only.
	UserID UserID `json:"user_id,omitempty"`
	// How long the key is valid, in seconds. The default is until it is revoked.
	ExpiresIn int `json:"expires_in,omitempty" minimum:"1"`
	// What the key's requests to models may use in a day or a month; a key that has a budget makes no keys itself. The
	// default is no bound.
	Budget auth.Budget `json:"budget,omitzero"`
}

// Check refuses a life that is none.
func (r *KeyRequest) Check() error {
	if r.ExpiresIn < 0 || r.ExpiresIn > maxCount {
		return Refuse("expires_in", "expires_in must be a number of seconds from 1 to %d", maxCount)
	}
	if err := r.Budget.Check(); err != nil {
		return At("budget", err)
	}
	if !r.Budget.IsZero() && r.Budget.Period == "" {
		r.Budget.Period = auth.PeriodMonth
	}
	return nil
}

// CreatedKey is a new key.
type CreatedKey struct {
	// The whole key, which is shown this once.
	APIKey string   `json:"api_key"`
	Key    auth.Key `json:"key"`
}

// KeyPath names a key in a path.
type KeyPath struct {
	// The id of a key.
	Key string `path:"key"`
}
