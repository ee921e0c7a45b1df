package model

import (
	"regexp"
	"sync"

	continuo "github.com/continuo-log/continuo"
)

// Dialect is how a model takes what its protocol leaves open. The zero value is the protocol as it is.
type Dialect struct {
	Roles continuo.Roles
	// Structured is the form in which a request may ask for an answer of a JSON Schema; "" for none.
	Structured Structured
	// StructuredWithTools asks in that form also where the request offers tools: many servers cannot do both.
	StructuredWithTools bool
}

// Structured names a way to ask for structured output in a chat completions request.
type Structured string

// The ways. StructuredObject asks for any JSON object.
const (
	StructuredOff    Structured = ""
	StructuredSchema Structured = "json_schema"
	StructuredObject Structured = "json_object"
)

// The words in which chat templates and servers refuse a sequence of roles, or structured output.
var (
	refusedSystem     = regexp.MustCompile(`(?i)system role (is )?not supported|only user and assistant roles|system messages? (is|are) not supported|does not support (the )?system (role|messages?|prompts?)`)
	refusedStructured = regexp.MustCompile(`(?i)response_format|json_schema|json_object|structured.?outputs?|guided.?(json|decoding)|grammar`)
	refusedRoles      = regexp.MustCompile(`(?i)roles must alternate|must alternate (between )?user|alternate user/assistant|system message must be (at|in) the (beginning|first)|system message must be (the )?first|` +
		`only one system message|multiple system messages|unexpected role '?"?(user|system|assistant)|after the optional system message`)
)

// After is the dialect in which a request is worth trying again that was refused in this one; ok is false when the
// refusal says nothing of that, or nothing else is left to try.
func (d Dialect) After(refusal *continuo.TurnError) (next Dialect, ok bool) {
	if refusal == nil || refusal.Reason != continuo.ReasonUpstream {
		return d, false
	}
	next = d
	switch {
	case refusedSystem.MatchString(refusal.Message) && d.Roles != continuo.RolesNoSystem:
		next.Roles = continuo.RolesNoSystem
	case refusedRoles.MatchString(refusal.Message) && d.Roles == continuo.RolesFree:
		next.Roles = continuo.RolesStrict
	case refusedStructured.MatchString(refusal.Message) && d.Structured == StructuredSchema:
		next.Structured = StructuredObject
	case refusedStructured.MatchString(refusal.Message):
		next.Structured = StructuredOff
	}
	return next, next != d
}

// RefusesForm reports whether a failure says that the form of the request was refused, whatever its status: the same
// request will not succeed later.
func RefusesForm(failed *Error) bool {
	_, ok := Dialect{Structured: StructuredSchema}.After(&continuo.TurnError{Reason: failed.Reason, Message: failed.Message})
	return ok
}

// Speaker remembers for a process which dialect a model takes. It is safe for concurrent use; a nil one speaks the
// protocol as it is and learns nothing.
type Speaker struct {
	mu      sync.Mutex
	dialect Dialect
	fixed   Fixed
}

// Fixed says which members of a dialect a refusal does not change, because somebody has set them.
type Fixed struct {
	Roles bool
}

// NewSpeaker begins with a dialect.
func NewSpeaker(begin Dialect, fixed Fixed) *Speaker {
	return &Speaker{dialect: begin, fixed: fixed}
}

// Dialect is the one to speak now.
func (s *Speaker) Dialect() Dialect {
	if s == nil {
		return Dialect{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dialect
}

// Learn takes a refusal of a request in a dialect, and reports whether another one is worth a try.
func (s *Speaker) Learn(spoken Dialect, refusal *continuo.TurnError) bool {
	next, ok := spoken.After(refusal)
	if s == nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next.Roles != spoken.Roles {
		if !s.fixed.Roles && s.dialect.Roles == spoken.Roles { // else another request was faster
			s.dialect.Roles = next.Roles
		}
		return s.dialect.Roles != spoken.Roles
	}
	if s.dialect.Structured == spoken.Structured {
		s.dialect.Structured = next.Structured
	}
	return s.dialect.Structured != spoken.Structured
}
