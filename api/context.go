package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/window"
)

func (s *Service) contextOperations() []Operation {
	const one = "/api/conversations/{id}"
	return []Operation{
		define(Operation{
			ID: "showRequest", Method: "GET", Path: one + "/entries/{seq}/request", Tag: "context", Summary: "show the request of an answer",
			Answers: answers(ok("The request.")),
		}, s.ShowRequest),
		define(Operation{
			ID: "showContext", Method: "GET", Path: one + "/context", Tag: "context", Summary: "show what a model would be sent, and why",
			Answers: answers(ok("The rendering and its plan."), shared(http.StatusRequestEntityTooLarge, "Overflow")),
		}, s.ShowContext),
		define(Operation{
			ID: "explainRecall", Method: "GET", Path: one + "/recall", Tag: "context", Summary: "show what would be recalled for a message, and why",
			Answers: answers(ok("The outcome, and the first entries of the ranking.")),
		}, s.ExplainRecall),
		define(Operation{
			ID: "showCache", Method: "GET", Path: one + "/cache", Tag: "context", Summary: "show how far providers' caches served its requests",
			Answers: answers(ok("The counts, and the requests with what they lost.")),
		}, s.ShowCache),
		define(Operation{
			ID: "showTranscript", Method: "GET", Path: one + "/transcript", Tag: "context", Summary: "show it as text",
			Answers: answers(ok("The transcript.").as(Media{Type: "text/plain"}, Media{Type: JSON})),
		}, s.ShowTranscript),
	}
}

// EntryPath names an entry in a path.
type EntryPath struct {
	ConversationPath
	// The `seq` of an assistant entry that a turn appended.
	Seq int64 `path:"seq" minimum:"1"`
}

// ShowRequest rebuilds the request of an answer.
//
// The request is made again from the log, and its hash is compared with the one that was recorded when it was sent: `same`
// says that these are the very bytes.
func (s *Service) ShowRequest(ctx context.Context, scope continuo.Scope, in EntryPath) (*engine.Replayed, error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return nil, err
	}
	request, err := s.Engine.Contexts.Request(ctx, conversation, in.Seq)
	return request, At("seq", err)
}

// Moment selects the state of a conversation.
type Moment struct {
	// Show the conversation as it was when this `seq` was the newest. The default is the newest there is.
	At int64 `query:"at" minimum:"1"`
}

// atRange says that an out-of-range seq is about the parameter at; all other parameters were checked before.
func atRange(err error) error {
	if errors.Is(err, continuo.ErrBadRange) {
		return At("at", err)
	}
	return err
}

// ContextQuery selects what a reader of a conversation sees.
type ContextQuery struct {
	ConversationPath
	// How the log is shown. `codex` is what coding agents are sent, `continuity` the first message and the newest ones,
	// `replay` a transcript to continue from, `handoff` what an agent gets that takes over the work; `chat`, `agent` and `run`
	// are the views of these modes. `recall` are the earlier entries that `query` needs most, and nothing else. `role:NAME` is what a role of a crew that has spoken in the conversation sees. The default
	// is the agent's view, else `continuity` in the mode chat and `codex` in the others.
	View string `query:"view" pattern:"^(chat|agent|run|codex|continuity|replay|handoff|recall|role:.+)$"`
	// The crew of the role that `view` names. The default is the one that spoke last at that place.
	Crew *string `query:"crew"`
	// The form of the rendering; the default is `transcript` for the view `replay`, `handoff` for the view `handoff`, which
	// alone has it, and `openai` for the others.
	Format engine.Format `query:"format" enum:"openai,anthropic,transcript,handoff"`
	// The next message: the answer is the request that it would get, with the earlier entries that would be recalled for it. In
	// the view `recall` it is what entries are recalled for; the default there is the newest message of a user. Nothing is
	// appended.
	Query *string `query:"query" maxLength:"20000"`
	// Where the view `recall` looks.
	Scope lookup.Scope `query:"scope" enum:"conversation,user,project" default:"conversation"`
	// Whether the view `recall` shows of entries of more than 80 tokens the 40 that `query` needs most, so that more entries
	// fit into the same limit.
	Passages bool `query:"passages" default:"false"`
	Moment
	// Replaces the view's limit of messages; 0 lifts it.
	MaxMessages *int `query:"max_messages" minimum:"0"`
	// Replaces the view's limit of Unicode characters; 0 lifts it.
	MaxChars *int `query:"max_chars" minimum:"0"`
	// Replaces the view's limit of tokens; 0 lifts it.
	MaxTokens *int `query:"max_tokens" minimum:"0"`
	// Who would read it; its tokenizer counts. The default is the agent's, else the default model.
	Model *string `query:"model"`
	// Who would answer, in the mode `agent`. The default is the conversation's agent, where its mode has one.
	AgentID *string `query:"agent_id"`
	// A run of the conversation: what its next step would be sent, or the step in progress; of a run that failed or
	// was stopped, the step that it would continue with. The step defines the agent, and the view unless `view` does. The
	// message that begins the step is not in the log before. A run that has no such step is refused.
	RunID *string `query:"run_id"`
	// Whether to show the system messages of the conversation's mode, of the role, or of the run's step, too.
	System bool `query:"system" default:"false"`
}

// readers returns which of the parameters that say who reads were given.
func (in *ContextQuery) readers(withCrew bool) (names []string) {
	for _, param := range []struct {
		name  string
		given bool
	}{{"model", in.Model != nil}, {"agent_id", in.AgentID != nil}, {"crew", withCrew && in.Crew != nil}} {
		if param.given {
			names = append(names, param.name)
		}
	}
	return names
}

// ConversationContext is what a reader of a conversation sees.
type ConversationContext struct {
	ConversationID string `json:"conversation_id"`
	*engine.Context
}

// ShowContext builds what a model would be sent.
//
// Asks no model and changes nothing.
func (s *Service) ShowContext(ctx context.Context, scope continuo.Scope, in ContextQuery) (shown ConversationContext, err error) {
	if err := s.checkContext(&in); err != nil {
		return shown, err
	}
	if in.Scope == lookup.Project && scope.UserID != "" {
		return shown, Refuse("scope", "scope project is not for keys of one user: use conversation or user")
	}
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return shown, err
	}
	result, err := s.Engine.Contexts.Build(ctx, conversation, engine.ContextRequest{
		View: in.View, Format: in.Format, Model: valueOf(in.Model), AgentID: valueOf(in.AgentID), Crew: valueOf(in.Crew), RunID: valueOf(in.RunID),
		Query: valueOf(in.Query), Scope: in.Scope, Passages: in.Passages, System: in.System, At: in.At, MaxMessages: in.MaxMessages, MaxChars: in.MaxChars, MaxTokens: in.MaxTokens,
	})
	switch {
	case err == nil:
	case valueOf(in.Crew) != "" && errors.Is(err, continuo.ErrNotFound):
		return shown, At("crew", err)
	case valueOf(in.RunID) != "" && (errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid)):
		return shown, At("run_id", err)
	case strings.HasPrefix(in.View, engine.RoleViewPrefix):
		return shown, RoleContextError(err, "view", "at", "")
	default:
		return shown, atRange(err)
	}
	return ConversationContext{conversation.ID, result}, nil
}

// checkContext refuses unknown names, and parameters that cannot be combined.
func (s *Service) checkContext(in *ContextQuery) error {
	for _, check := range []func(*ContextQuery) error{s.checkView, checkRun, checkQuery} {
		if err := check(in); err != nil {
			return err
		}
	}
	if err := oneOf("model", valueOf(in.Model), s.Engine.Catalog.Models()...); err != nil {
		return err
	}
	return s.checkAgent("agent_id", valueOf(in.AgentID))
}

// checkView refuses an unknown view, and parameters that cannot be combined with it: a role has a model of its own.
func (s *Service) checkView(in *ContextQuery) error {
	role, ok := strings.CutPrefix(in.View, engine.RoleViewPrefix)
	switch {
	case !ok && in.Crew != nil:
		return Refuse("crew", "crew is of the views of roles, such as role:reviewer")
	case !ok:
		return oneOf("view", in.View, catalog.ViewNames()...)
	case role == "":
		return Refuse("view", "role: is followed by the name of a role, such as role:reviewer")
	case in.Crew != nil && !engine.DefinitionIDPattern.MatchString(*in.Crew):
		return At("crew", s.noCrew(*in.Crew))
	}
	for _, param := range in.readers(false) {
		return Refuse(param, "%s cannot be combined with the view of a role, which its crew defines", param)
	}
	return nil
}

// checkRun refuses parameters that cannot be combined with a run: its step decides who answers.
func checkRun(in *ContextQuery) error {
	if in.RunID == nil {
		return nil
	}
	if id := *in.RunID; !engine.KeyPattern.MatchString(id) { // all ids match this pattern
		return At("run_id", noRun(id))
	}
	for _, param := range in.readers(true) {
		return Refuse(param, "%s cannot be combined with run_id: the run's step selects the agent", param)
	}
	if strings.HasPrefix(in.View, engine.RoleViewPrefix) {
		return Refuse("view", "the view of a role cannot be combined with run_id: the steps of runs have no roles")
	}
	return nil
}

// checkQuery refuses parameters that cannot be combined with the next message.
func checkQuery(in *ContextQuery) error {
	recalls := in.View == catalog.RecallView
	switch {
	case in.Passages && !recalls:
		return Refuse("passages", "passages are of the view recall")
	case in.Query == nil && recalls && in.At != 0:
		return Refuse("query", "query is missing: the view recall of an earlier moment needs it")
	case in.Query == nil || recalls:
		return nil
	case in.RunID != nil:
		return Refuse("query", "query cannot be combined with run_id: a run's step has no message of a person")
	case in.At != 0:
		return Refuse("query", "query cannot be combined with at: it stands for the next message")
	case strings.HasPrefix(in.View, engine.RoleViewPrefix), in.View == task.HandoffView:
		return Refuse("query", "query cannot be combined with the view %s", in.View)
	}
	return nil
}

// noRun is the error of an id that no run has.
func noRun(id string) error { return fmt.Errorf("run %q: %w", Bounded(id), continuo.ErrNotFound) }

// TranscriptQuery selects a transcript.
type TranscriptQuery struct {
	ConversationPath
	Moment
	// How many messages before the open cycle to show at most; 0 for all.
	History *int `query:"history" minimum:"0" doc:"default=15"`
}

// Transcript is a conversation as text.
type Transcript struct {
	Text string       `json:"text"`
	Plan *window.Plan `json:"plan"`
}

// WriteText is the text alone.
func (t Transcript) WriteText() []byte { return []byte(t.Text) }

// ShowTranscript shows a conversation as text.
//
// The canonical text form: what came before the open cycle under `=== HISTORY ===`, the cycle itself, whole, under
// `=== CURRENT ===`. With `Accept: application/json` the answer is the text and its plan.
func (s *Service) ShowTranscript(ctx context.Context, scope continuo.Scope, in TranscriptQuery) (Transcript, error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return Transcript{}, err
	}
	transcript, plan, err := s.Engine.Contexts.Transcript(ctx, conversation, in.At, in.History)
	if err != nil {
		return Transcript{}, atRange(err)
	}
	return Transcript{transcript.String(), plan}, nil
}
