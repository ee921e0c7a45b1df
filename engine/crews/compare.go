package crews

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/internal/brief"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/internal/linediff"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// RoleContextQuery selects what a role of a crew sees, or saw.
type RoleContextQuery struct {
	Role string
	// At is the newest seq to consider; 0: the newest there is.
	At int64
	// Request is the seq of an answer of the role: what it saw when it gave that answer. 0: what it would see at At.
	Request int64
}

// RoleContext is what a role sees or saw.
type RoleContext struct {
	Role    string `json:"role"`
	At      int64  `json:"at"`                // the newest seq that it could see
	Request int64  `json:"request,omitempty"` // the seq of the answer; absent for what it would see
	// Text is the role's system messages and the text that it is shown, followed by the calls of its own open turn.
	Text string       `json:"text"`
	Plan *window.Plan `json:"plan" nullable:"false"`
	// Redacted are the seqs of entries that the request showed and that were redacted since: Text lacks their content.
	Redacted []int64 `json:"redacted,omitempty"`
}

// Comparison is what two roles see, or one role at two seqs.
type Comparison struct {
	Left  RoleContext `json:"left"`
	Right RoleContext `json:"right"`
	// Lines are those of both texts: the lines that are equal or left are the left text, those that are equal or right
	// the right one. Texts that have too little in common are not compared line by line.
	Lines []DiffLine `json:"lines"`
}

// DiffLine is a line of the left text, of the right text, or of both.
type DiffLine = linediff.Line

// ComparisonError says which of the two queries caused an error.
type ComparisonError struct {
	Right bool
	Err   error
}

func (e *ComparisonError) Error() string { return e.Err.Error() }
func (e *ComparisonError) Unwrap() error { return e.Err }

// CompareRoles shows what two roles of a crew see in its session's conversation, or one role at two seqs, and the
// lines in which the texts differ. It changes nothing and calls no model. ErrNotFound where the crew has no cycle
// there; an error that one of the two queries caused is a *ComparisonError.
func (cs *Crews) CompareRoles(ctx context.Context, session Session, left, right RoleContextQuery) (*Comparison, error) {
	conversation, _, err := cs.cycleOf(ctx, session)
	if err != nil {
		return nil, err
	}
	var comparison Comparison
	if comparison.Left, err = cs.roleContext(ctx, conversation, session.Crew, left); err != nil {
		return nil, &ComparisonError{Right: false, Err: err}
	}
	if comparison.Right, err = cs.roleContext(ctx, conversation, session.Crew, right); err != nil {
		return nil, &ComparisonError{Right: true, Err: err}
	}
	comparison.Lines = linediff.Lines(comparison.Left.Text, comparison.Right.Text)
	return &comparison, nil
}

// RoleRequest rebuilds the request to a role of a crew from the seq of its answer; ErrNotFound where the entry is not
// an answer of the role.
func (cs *Crews) RoleRequest(ctx context.Context, session Session, role string, seq int64) (*contexts.Replayed, error) {
	conversation, _, err := cs.cycleOf(ctx, session)
	if err != nil {
		return nil, err
	}
	return cs.roleRequest(ctx, conversation, session.Crew, role, seq)
}

func (cs *Crews) roleRequest(ctx context.Context, conversation continuo.Conversation, crewID, role string, seq int64) (*contexts.Replayed, error) {
	if _, err := contexts.CheckSeq(conversation, seq); err != nil {
		return nil, err
	}
	role, err := cs.roleName(ctx, conversation, crewID, role)
	if err != nil {
		return nil, err
	}
	for entry, err := range cs.log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return nil, err
		}
		if entry.WorkflowID != continuo.CrewWorkflow(crewID) || entry.NodeID != role || entry.Round == nil {
			return nil, fmt.Errorf("entry %d: %w: it is not an answer of the role %s; its rounds list the answers", seq, continuo.ErrNotFound, brief.Shorten(role, 60))
		}
	}
	return cs.contexts.Request(ctx, conversation, seq)
}

// roleContext builds what one role sees or saw.
func (cs *Crews) roleContext(ctx context.Context, conversation continuo.Conversation, crewID string, query RoleContextQuery) (RoleContext, error) {
	if query.Request != 0 {
		return cs.roleContextOfRound(ctx, conversation, crewID, query)
	}
	at, err := contexts.CheckSeq(conversation, query.At)
	if err != nil {
		return RoleContext{}, err
	}
	chosen, err := cs.ChooseRoleAt(ctx, conversation, crewID, query.Role, at)
	if err != nil {
		return RoleContext{}, err
	}
	plan, _, err := cs.contexts.Plan(ctx, conversation, at, chosen.View, chosen, contexts.FormatOpenAI)
	if err != nil {
		return RoleContext{}, err
	}
	return RoleContext{Role: strings.TrimPrefix(chosen.ViewName, contexts.RoleViewPrefix), At: at, Text: textFor(chosen.System, plan), Plan: plan}, nil
}

// roleContextOfRound builds what a role saw when it gave an answer.
func (cs *Crews) roleContextOfRound(ctx context.Context, conversation continuo.Conversation, crewID string, query RoleContextQuery) (RoleContext, error) {
	role, err := cs.roleName(ctx, conversation, crewID, query.Role)
	if err != nil {
		return RoleContext{}, err
	}
	replayed, err := cs.roleRequest(ctx, conversation, crewID, role, query.Request)
	if err != nil {
		return RoleContext{}, err
	}
	envelope, err := cs.log.Envelope(ctx, replayed.Round.Envelope)
	if err != nil {
		return RoleContext{}, err
	}
	return RoleContext{
		Role: role, At: replayed.Round.At, Request: query.Request, Redacted: replayed.Redacted,
		Text: textFor(envelope.System, replayed.Plan), Plan: replayed.Plan,
	}, nil
}

// textFor is what a role is shown as one text, without the parts of the protocol.
func textFor(system []string, plan *window.Plan) string {
	texts := slices.Clone(system)
	if text := RoleText(plan); text != "" {
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n\n")
}

// RoleText is what a role is shown as one text, followed by the calls of its own open turn.
func RoleText(plan *window.Plan) string {
	var texts []string
	if text := crewview.Text(plan); text != "" {
		texts = append(texts, text)
	}
	open := plan.Messages[plan.Role.Before:]
	for _, event := range render.TranscriptOf(&window.Plan{Messages: open}).History {
		texts = append(texts, "["+string(event.Kind)+"] "+event.Text)
	}
	return strings.Join(texts, "\n\n")
}
