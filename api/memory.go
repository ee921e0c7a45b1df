package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/memories"
)

func (s *Service) memoryOperations() []Operation {
	const all, one, tag = "/api/memory", "/api/memory/{fact}", "memory"
	quoteless := failing(http.StatusBadRequest, "A quote does not occur verbatim in its source (`rule`).")
	return []Operation{
		define(Operation{
			ID: "listMemory", Method: "GET", Path: all, Tag: tag, Summary: "list what is known of a user, the newest first",
			Answers: answers(ok("A page of facts.")),
		}, s.ListMemory),
		define(Operation{
			ID: "remember", Method: "POST", Path: all, Tag: tag, Summary: "add a fact", Answers: answers(created("The fact."), quoteless),
			Example: `{"text": "I prefer short answers", "kind": "preference"}`,
		}, s.Remember),
		define(Operation{
			ID: "forgetAll", Method: "DELETE", Path: all, Tag: tag, Summary: "remove everything that is known of a user",
			Answers: answers(Answer{Status: http.StatusNoContent, Description: "It is gone."}),
		}, s.ForgetAll),
		define(Operation{
			ID: "exportMemory", Method: "GET", Path: all + "/export", Tag: tag, Summary: "everything that is known of a user, in one answer",
			Answers: answers(ok("All facts, and the profile.")),
		}, s.ExportMemory),
		define(Operation{
			ID: "importMemory", Method: "POST", Path: all + "/import", Tag: tag, Summary: "add the facts of an export of a memory",
			Body:    []Media{{Type: JSON, Schema: reflect.TypeFor[memories.Export]()}, {Type: JSONLines}},
			Answers: answers(ok("What was added.")),
		}, s.ImportMemory),
		define(Operation{
			ID: "deriveMemory", Method: "POST", Path: all + "/derive", Tag: tag, Summary: "add patterns that several messages of a user have in common",
			Answers: answers(ok("The facts that are new.")),
		}, s.DeriveMemory),
		define(Operation{
			ID: "showFact", Method: "GET", Path: one, Tag: tag, Summary: "show a fact and its history", Answers: answers(ok("The fact.")),
		}, s.ShowFact),
		define(Operation{
			ID: "forgetFact", Method: "DELETE", Path: one, Tag: tag, Summary: "remove a fact permanently",
			Answers: answers(Answer{Status: http.StatusNoContent, Description: "It is gone."}, failing(http.StatusConflict,
				"With `sources`: a turn of a source runs (`conversation_busy`), or its conversation is archived (`archived`).")),
		}, s.ForgetFact),
		define(Operation{
			ID: "correctFact", Method: "POST", Path: one + "/correct", Tag: tag, Summary: "add a fact that supersedes another one",
			Answers: answers(created("The new fact."), quoteless),
		}, s.CorrectFact),
	}
}

// MemoryOwner says whose memory is meant.
type MemoryOwner struct {
	// The user whose memory it is. Default: the user that the key is bound to; without one, the memory of the conversations
	// that have no user.
	UserID *string `query:"user_id" doc:"minLength=1,maxLength=256"`
	// The memory of the project instead, which all of its users share. A key that is bound to a user may read it only.
	Project bool `query:"project" default:"false"`
}

// owner is the owner as the engine has it.
func (o MemoryOwner) owner(scope continuo.Scope) (memories.Owner, error) {
	if o.UserID != nil && *o.UserID == "" {
		return memories.Owner{}, Refuse("user_id", "user_id is empty: leave it out for the conversations without a user")
	}
	if o.Project && o.UserID != nil {
		return memories.Owner{}, Refuse("project", "a memory is a user's or the project's: leave out user_id or project")
	}
	if _, err := scope.Owner(valueOf(o.UserID)); err != nil {
		return memories.Owner{}, At("user_id", err)
	}
	return memories.Owner{UserID: valueOf(o.UserID), Project: o.Project}, nil
}

// FactPath names a fact in a path.
type FactPath struct {
	// The id of a fact, which names it within its memory.
	Fact int64 `path:"fact" arg:"fact" minimum:"1"`
	MemoryOwner
}

// MemoryQuery selects facts.
type MemoryQuery struct {
	MemoryOwner
	// Only facts that have to do with this text, the most likely ones first, in one page.
	Query string `query:"query" maxLength:"2000"`
	// Only facts of this kind; without `query`.
	Kind continuo.FactKind `query:"kind" enum:"identity,preference,instruction,decision,event,relation,other"`
	// Also facts that others have superseded, and those whose time is over.
	All bool `query:"all" default:"false"`
	// How many to give at most.
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"100"`
	Cursor
}

// ListMemory lists facts.
//
// The fact that was recorded last comes first. Without `all`, facts that others have superseded and those whose time is over are left out. What users
// have said since the last turn is extracted first, where `memory.enabled` is on.
func (s *Service) ListMemory(ctx context.Context, scope continuo.Scope, in MemoryQuery) (List[memories.Fact], error) {
	var none List[memories.Fact]
	owner, err := in.owner(scope)
	if err != nil {
		return none, err
	}
	if in.Query != "" {
		if in.Cursor.Cursor != nil || in.Kind != "" || in.All {
			return none, Refuse("query", "query gives one page of facts that hold: leave out cursor, kind and all")
		}
		found, err := s.Engine.Memories.Recall(ctx, scope, owner, in.Query, in.Limit)
		return List[memories.Fact]{Data: found}, err
	}
	query := memories.Query{Owner: owner, Kind: in.Kind, All: in.All, Limit: in.Limit + 1}
	if _, err := in.decode(&query.Before); err != nil {
		return none, err
	}
	found, err := s.Engine.Memories.List(ctx, scope, query)
	if err != nil {
		return none, err
	}
	return listed(found, in.Limit, func(f memories.Fact) any { return f.ID }), nil
}

// FactFields are the fields of a fact that a caller may set.
type FactFields struct {
	Text string `json:"text" doc:"minLength=1" maxLength:"2000"`
	// Default: found by the built-in rules, else `other`; of a correction, the old fact's.
	Kind continuo.FactKind `json:"kind,omitempty" enum:"identity,preference,instruction,decision,event,relation,other"`
	// Whom or what it is about. Default: `user`.
	Subject string `json:"subject,omitempty" maxLength:"200"`
	// What it says of the subject, such as `home`. Of two facts with the same subject and attribute, the newer one supersedes
	// the older one. Default: found by the built-in rules, else none.
	Attribute string `json:"attribute,omitempty" maxLength:"200"`
	// Since when it holds. Default: now.
	ValidFrom *time.Time `json:"valid_from,omitempty"`
	// When its time ends: from then on it is neither listed nor recalled nor in the profile. Default: the end of the day that the text
	// names, such as "until Friday", in UTC; else it has no end.
	ValidTo *time.Time `json:"valid_to,omitempty"`
	// What supports it: entries of conversations of the same user, each with words that are in it. Default: the statement
	// is its own source.
	Sources []memories.Source `json:"sources,omitempty" doc:"maxItems=64"`
}

func (f FactFields) statement(owner memories.Owner, key IdempotencyKey) memories.Statement {
	return memories.Statement{
		Owner: owner, Text: f.Text, Kind: f.Kind, Subject: f.Subject, Attribute: f.Attribute, ValidFrom: valueOf(f.ValidFrom), ValidTo: valueOf(f.ValidTo), Sources: f.Sources, Key: string(key),
	}
}

// RememberRequest is a fact to add.
type RememberRequest struct {
	Once
	MemoryOwner
	FactFields
}

// Remember adds a fact.
//
// A fact without `sources` is a statement of the caller, who answers for it. A quote of a source must occur verbatim
// in it.
func (s *Service) Remember(ctx context.Context, scope continuo.Scope, in RememberRequest) (memories.Fact, error) {
	owner, err := in.owner(scope)
	if err != nil {
		return memories.Fact{}, err
	}
	fact, err := s.Engine.Memories.Remember(ctx, scope, in.statement(owner, in.Key))
	return fact, AboutFact(err)
}

// CorrectRequest is a fact that supersedes another one.
type CorrectRequest struct {
	Once
	FactPath
	FactFields
}

// CorrectFact adds a fact that supersedes another one. Both stay, with their times.
func (s *Service) CorrectFact(ctx context.Context, scope continuo.Scope, in CorrectRequest) (memories.Fact, error) {
	owner, err := in.owner(scope)
	if err != nil {
		return memories.Fact{}, err
	}
	fact, err := s.Engine.Memories.Correct(ctx, scope, in.Fact, in.statement(owner, in.Key))
	return fact, AboutFact(err)
}

// AboutFact adds the member of a fact that caused an error of memories.
func AboutFact(err error) error {
	var rule *continuo.RuleError
	switch {
	case errors.As(err, &rule):
		return Refuse("sources", "%s", rule.Message)
	case errors.Is(err, memories.ErrText):
		return At("text", err)
	case errors.Is(err, memories.ErrEndsBefore):
		return At("valid_to", err)
	}
	return err
}

// ShowFact shows a fact, with the facts of its subject and attribute and those that supersede or contradict it.
func (s *Service) ShowFact(ctx context.Context, scope continuo.Scope, in FactPath) (memories.Shown, error) {
	owner, err := in.owner(scope)
	if err != nil {
		return memories.Shown{}, err
	}
	return s.Engine.Memories.Get(ctx, scope, owner, in.Fact)
}

// DeriveMemory adds patterns: topics, tools, times, repeated instructions and corrections, and what the model of
// `memory.extractor` finds.
//
// A pattern has at least three sources over at least two conversations, with a quote of each, and `derived` is true. A newer
// one supersedes the one before. It fails where `memory.enabled` is off. Messages of which a pattern was forgotten are not counted again.
func (s *Service) DeriveMemory(ctx context.Context, scope continuo.Scope, in MemoryOwner) (List[memories.Fact], error) {
	owner, err := in.owner(scope)
	if err == nil && in.Project && scope.UserID == "" {
		err = Refuse("project", "patterns are of a user: leave out project")
	}
	if err != nil {
		return List[memories.Fact]{}, err
	}
	added, err := s.Engine.Memories.Derive(ctx, scope, owner)
	if added == nil {
		added = []memories.Fact{}
	}
	return List[memories.Fact]{Data: added}, err
}

// ForgetRequest says which fact to forget.
type ForgetRequest struct {
	FactPath
	// Also redact the messages that the fact was taken from.
	Sources bool `query:"sources" default:"false"`
}

// ForgetFact removes a fact permanently.
//
// No byte of it stays in the memory, the profiles, the index or in what is recalled, and it is not extracted again from the
// same message. The message itself stays in its conversation, unless `sources` is true.
func (s *Service) ForgetFact(ctx context.Context, scope continuo.Scope, in ForgetRequest) (None, error) {
	owner, err := in.owner(scope)
	if err != nil {
		return None{}, err
	}
	return None{}, s.Engine.Memories.Forget(ctx, scope, owner, in.Fact, in.Sources)
}

// ForgetAllRequest says whose facts to forget.
type ForgetAllRequest struct {
	MemoryOwner
	// Also redact the messages that the facts were taken from.
	Sources bool `query:"sources" default:"false"`
}

// ForgetAll removes everything that is known of a user, or of the project. Conversations stay, without the messages that facts
// were taken from if `sources` is true; nothing that was said in them before is extracted again.
func (s *Service) ForgetAll(ctx context.Context, scope continuo.Scope, in ForgetAllRequest) (None, error) {
	owner, err := in.owner(scope)
	if err != nil {
		return None{}, err
	}
	return None{}, s.Engine.Memories.ForgetAll(ctx, scope, owner, in.Sources)
}

// ExportMemory returns everything that is known of a user, or of the project.
//
// Facts that others have superseded are there too. The oldest fact comes first.
func (s *Service) ExportMemory(ctx context.Context, scope continuo.Scope, in MemoryOwner) (memories.Export, error) {
	owner, err := in.owner(scope)
	if err != nil {
		return memories.Export{}, err
	}
	return s.Engine.Memories.Export(ctx, scope, owner)
}

// ImportMemoryRequest is an export to add.
type ImportMemoryRequest struct {
	MemoryOwner
	// Also the export of another memory: of another user, of no user or of a project.
	AnyUser bool   `query:"any_user" default:"false"`
	Body    []byte `body:"raw"`
}

// ImportMemory adds the facts of an export to a memory, all or none, with their times and their order.
//
// The body is an export as it is, JSON or JSON Lines. A source that is here is linked, and must have the words of its quote;
// a fact without such a source becomes a statement of the caller with `imported`, which has the quotes. A fact that the memory has is not
// added again; one that was removed here, or of which a message was, stays removed. An error names the line of the body.
func (s *Service) ImportMemory(ctx context.Context, scope continuo.Scope, in ImportMemoryRequest) (memories.ImportedFacts, error) {
	owner, err := in.owner(scope)
	if err != nil {
		return memories.ImportedFacts{}, err
	}
	file, err := memories.ReadFile(in.Body)
	if err != nil {
		return memories.ImportedFacts{}, err
	}
	return s.Engine.Memories.Import(ctx, scope, owner, file, in.AnyUser)
}
