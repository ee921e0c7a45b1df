package model

import (
	"net/http"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
)

// Dialect is the variant of its protocol that a model accepts. The zero value is the standard protocol.
type Dialect struct {
	Roles continuo.Roles
	// Structured is the form in which a request may require an answer valid for a JSON Schema; "" for none.
	Structured Structured
	// StructuredWithTools uses that form also in requests with tools: many servers do not support both.
	StructuredWithTools bool
	// NoEncryptedReasoning leaves out of requests to the Responses API that they ask for encrypted reasoning.
	NoEncryptedReasoning bool
}

// Structured names a way to request structured output in chat completions.
type Structured string

// The ways. StructuredObject requests any JSON object.
const (
	StructuredOff    Structured = ""
	StructuredSchema Structured = "json_schema"
	StructuredObject Structured = "json_object"
)

// Parts of the error messages with which chat templates and servers refuse a sequence of roles, or structured
// output.
var (
	refusedSystem     = lazy.Regexp(`(?i)system role (is )?not supported|only user and assistant roles|system messages? (is|are) not supported|does not support (the )?system (role|messages?|prompts?)`)
	refusedStructured = lazy.Regexp(`(?i)response_format|output_config|output_format|json_schema|json_object|structured.?outputs?|guided.?(json|decoding)|grammar`)
	refusedReasoning  = lazy.Regexp(`(?i)encrypted content is not supported|reasoning\.encrypted_content`)
	refusedRoles      = lazy.Regexp(`(?i)roles must alternate|must alternate (between )?user|alternate user/assistant|system message must be (at|in) the (beginning|first)|system message must be (the )?first|` +
		`only one system message|multiple system messages|unexpected role '?"?(user|system|assistant)|after the optional system message`)
)

// After returns the dialect in which to retry a request that was refused in this one; ok is false when the
// refusal has another cause, or no other dialect is left to try.
func (d Dialect) After(refusal *continuo.TurnError) (next Dialect, ok bool) {
	if refusal == nil || refusal.Reason != continuo.ReasonUpstream {
		return d, false
	}
	next = d
	switch {
	case refusedReasoning().MatchString(refusal.Message):
		next.NoEncryptedReasoning = true
	case refusedSystem().MatchString(refusal.Message) && d.Roles != continuo.RolesNoSystem:
		next.Roles = continuo.RolesNoSystem
	case refusedRoles().MatchString(refusal.Message) && d.Roles == continuo.RolesFree:
		next.Roles = continuo.RolesStrict
	case refusedStructured().MatchString(refusal.Message) && d.Structured == StructuredSchema:
		next.Structured = StructuredObject
	case refusedStructured().MatchString(refusal.Message):
		next.Structured = StructuredOff
	}
	return next, next != d
}

// refusedSignature is how Anthropic's API refuses thinking that its model has not signed.
var refusedSignature = lazy.Regexp("(?i)invalid `?signature`?.*thinking|thinking\\S*\\.signature|thinking.*signature")

// RefusesSignature reports whether a failure refuses the signature of thinking in the request.
func RefusesSignature(failure *continuo.TurnError) bool {
	return failure != nil && failure.ProviderStatus == http.StatusBadRequest && refusedSignature().MatchString(failure.Message)
}

// IsFormatRefusal reports whether a failure refuses the form of the request, whatever its status: the same
// request will not succeed later.
func IsFormatRefusal(failed *Error) bool {
	_, ok := Dialect{Structured: StructuredSchema}.After(&continuo.TurnError{Reason: failed.Reason, Message: failed.Message})
	return ok
}

// Speaker caches for a process which dialect a model accepts. It is safe for concurrent use; a nil one uses
// the standard protocol and learns nothing.
type Speaker struct {
	mu      sync.Mutex
	dialect Dialect
	fixed   Fixed
}

// Fixed marks the members of a dialect that are configured, and that refusals do not change.
type Fixed struct {
	Roles bool
}

// NewSpeaker returns a speaker that begins with a dialect.
func NewSpeaker(begin Dialect, fixed Fixed) *Speaker {
	return &Speaker{dialect: begin, fixed: fixed}
}

// Dialect returns the dialect to use now.
func (s *Speaker) Dialect() Dialect {
	if s == nil {
		return Dialect{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dialect
}

// Learn handles a refusal of a request in a dialect, and reports whether to retry in another one.
func (s *Speaker) Learn(used Dialect, refusal *continuo.TurnError) bool {
	next, ok := used.After(refusal)
	if s == nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next.Roles != used.Roles {
		if !s.fixed.Roles && s.dialect.Roles == used.Roles { // else another request has changed it
			s.dialect.Roles = next.Roles
		}
		return s.dialect.Roles != used.Roles
	}
	if next.NoEncryptedReasoning != used.NoEncryptedReasoning {
		s.dialect.NoEncryptedReasoning = true
		return true
	}
	if s.dialect.Structured == used.Structured {
		s.dialect.Structured = next.Structured
	}
	return s.dialect.Structured != used.Structured
}
