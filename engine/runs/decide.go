package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// Decision is a person's decision: the answer to an approval node, or whether a tool call may run.
type Decision struct {
	Node     string // the approval node, or the step with the call; "" where only one decision is pending
	Call     string // id of the call; "" for an approval, or where only one decision is pending
	Approved bool
	Comment  string
}

// pendingDecision is a node or a call that waits for a person.
type pendingDecision struct {
	node *workflow.NodeStatus
	call *workflow.WaitingCall // nil for an approval
}

func (p pendingDecision) String() string {
	if p.call == nil {
		return p.node.ID
	}
	return fmt.Sprintf("%s: %s(%s), tool_call_id %s", p.node.ID, p.call.Name, brief.Shorten(p.call.Arguments, 60), p.call.ID)
}

// Decide records a person's decision and resumes the run. ErrNotFound says that no decision of that name is
// pending, ErrInvalid that several are; the first decision counts.
func (rs *Runs) Decide(ctx context.Context, run continuo.Run, decision Decision, detached bool) (*Status, error) {
	if rs.life.IsClosed() {
		return nil, lifecycle.ErrClosing // before the decision is recorded
	}
	status, err := rs.status(ctx, run)
	if err != nil {
		return nil, err
	}
	meant, err := chooseDecision(status, decision)
	if err != nil {
		return nil, err
	}
	if meant.call == nil {
		err = rs.decideApproval(ctx, run, decision)
	} else {
		err = rs.decideCall(ctx, run, meant, decision, detached)
	}
	if err != nil {
		return nil, err
	}
	return rs.resumeRecorded(ctx, run, detached)
}

// chooseDecision finds the pending decision that a Decision names. Without a call it is an approval, possibly of a
// node that does not wait.
func chooseDecision(status *Status, decision Decision) (pendingDecision, error) {
	var found []pendingDecision
	for i := range status.Nodes {
		node := &status.Nodes[i]
		if decision.Node != "" && decision.Node != node.ID || node.State != workflow.NodeWaiting {
			continue
		}
		if len(node.WaitingFor) == 0 && decision.Call == "" {
			found = append(found, pendingDecision{node: node})
		}
		for j := range node.WaitingFor {
			if call := &node.WaitingFor[j]; decision.Call == "" || decision.Call == call.ID {
				found = append(found, pendingDecision{node, call})
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && decision.Call != "":
		return pendingDecision{}, fmt.Errorf("run %s: %w: no call %q waits for a decision", status.ID, continuo.ErrNotFound, brief.Shorten(decision.Call, 60))
	case len(found) == 0:
		return pendingDecision{}, nil
	}
	var words []string
	for _, pending := range found {
		words = append(words, pending.String())
	}
	return pendingDecision{}, fmt.Errorf("run %s: %w: several decisions are waited for, name the step or the call: %s", status.ID, continuo.ErrInvalid, strings.Join(words, "; "))
}

// decideApproval records the answer to an approval node.
func (rs *Runs) decideApproval(ctx context.Context, run continuo.Run, decision Decision) error {
	return rs.change(ctx, run, func(s *workflow.State) ([]continuo.Entry, error) {
		if s.Run.IsOver() {
			return nil, fmt.Errorf("run %s: %w: it is %s", run.ID, ErrOver, s.Run)
		}
		node, err := waiting(s, decision.Node)
		if err != nil {
			return nil, err
		}
		return s.Decide(node, decision.Approved, decision.Comment), nil
	})
}

// decideCall signals the decision to the turn of the call. Where the turn's process is gone, the run is resumed
// first, and the decision waits until the call is asked about again.
func (rs *Runs) decideCall(ctx context.Context, run continuo.Run, meant pendingDecision, decision Decision, detached bool) error {
	if meant.node.TurnID == "" {
		if err := rs.driver.Resume(ctx, run, detached); err != nil {
			return err
		}
		asked, err := rs.awaitQuestion(ctx, run, meant)
		if err != nil {
			return err
		}
		meant = asked
	}
	in := continuo.Conversation{ID: cmp.Or(meant.node.Branch, run.ConversationID)}
	found, err := rs.turns.Get(ctx, in, meant.node.TurnID)
	if err != nil {
		return err
	}
	if found.State != continuo.TurnRunning {
		return fmt.Errorf("turn %s: %w", found.ID, continuo.ErrNotRunning)
	}
	asked, err := rs.keeper.Decide(ctx, found, meant.call.ID, turn.Decision{Allowed: decision.Approved, Reason: decision.Comment})
	if err != nil {
		return err
	}
	return rs.awaitDecided(ctx, found, asked, meant.call.ID, decision.Approved)
}

// awaitDecided waits until a turn has applied a decision on a call, so that a client that reads the run afterwards
// does not see the call as pending. It fails with ErrDecided where an opposite decision was first. After Options.Wait
// it returns nil: the decision is recorded and will be applied.
func (rs *Runs) awaitDecided(ctx context.Context, running continuo.Turn, asked int64, callID string, approved bool) error {
	ctx, cancel := context.WithTimeout(ctx, rs.options.Wait)
	defer cancel()
	for event, err := range rs.keeper.Follow(ctx, running.ConversationID, running.ID, asked) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case event.Kind != turn.Decided || event.Call.ID != callID:
			continue
		case event.Decision.Allowed == approved:
			return nil
		case event.Decision.Allowed:
			return fmt.Errorf("call %s: %w: it was allowed", callID, ErrDecided)
		}
		word := "it was denied"
		if event.Decision.Reason != "" {
			word += ": " + event.Decision.Reason
		}
		return fmt.Errorf("call %s: %w: %s", callID, ErrDecided, word)
	}
	return fmt.Errorf("turn %s: %w: it ended before it knew of the decision", running.ID, continuo.ErrNotRunning)
}

// awaitQuestion waits until a run asks again about a call that was pending when the process of its newest turn ended.
func (rs *Runs) awaitQuestion(ctx context.Context, run continuo.Run, left pendingDecision) (pendingDecision, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rs.options.Wait, fmt.Errorf("run %s: %w: its step %s is not waiting for a decision", run.ID, continuo.ErrBusy, left.node.ID))
	defer cancel()
	listener := rs.log.Listen(cmp.Or(left.node.Branch, run.ConversationID))
	defer listener.Close()
	for {
		changed := listener.Changed()
		status, err := rs.status(ctx, run)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return left, err
		}
		at := slices.IndexFunc(status.Nodes, func(node workflow.NodeStatus) bool { return node.ID == left.node.ID })
		node := &status.Nodes[at]
		for i := range node.WaitingFor {
			if call := &node.WaitingFor[i]; node.TurnID != "" && call.Name == left.call.Name && call.Arguments == left.call.Arguments {
				return pendingDecision{node, call}, nil
			}
		}
		if node.State != workflow.NodeRunning && node.State != workflow.NodeRetrying && node.State != workflow.NodeWaiting || node.Visit != left.node.Visit {
			return left, fmt.Errorf("run %s: %w: the call %s does not wait for a decision any more", run.ID, continuo.ErrNotFound, left.call.ID)
		}
		if !listener.Wait(ctx, changed, durable.TurnPoll) {
			return left, context.Cause(ctx)
		}
	}
}

// addPendingCalls adds to a status the calls that wait for a person: those of running turns, and those that were pending
// when a turn's process ended, which the run asks about again when it is resumed.
func (rs *Runs) addPendingCalls(ctx context.Context, status *Status, turns []continuo.Turn) error {
	waits, busy := false, false
	for i := range status.Nodes {
		node := &status.Nodes[i]
		if node.State != workflow.NodeRunning {
			busy = busy || node.State == workflow.NodeRetrying
			continue
		}
		var err error
		at := slices.IndexFunc(turns, func(t continuo.Turn) bool { return t.NodeID == node.ID })
		if at >= 0 {
			node.TurnID = turns[at].ID
			node.WaitingFor, err = rs.pendingCallsOf(ctx, turns[at])
		} else {
			node.WaitingFor, err = rs.undecidedCalls(ctx, cmp.Or(node.Branch, status.ConversationID), status.ID, node.ID)
		}
		if err != nil {
			return err
		}
		if len(node.WaitingFor) == 0 {
			busy = true
			continue
		}
		node.State, waits = workflow.NodeWaiting, true
	}
	if waits && !busy && status.State == continuo.RunRunning {
		status.State = continuo.RunWaiting
	}
	return nil
}

func (rs *Runs) pendingCallsOf(ctx context.Context, running continuo.Turn) (asked []workflow.WaitingCall, err error) {
	waiting, err := rs.turns.Waiting(ctx, running)
	for _, call := range waiting {
		asked = append(asked, workflow.WaitingCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	}
	return asked, err
}

// undecidedCalls reads the calls that were undecided when the newest turn of a step ended.
func (rs *Runs) undecidedCalls(ctx context.Context, conversationID, runID, nodeID string) ([]workflow.WaitingCall, error) {
	conversation, err := rs.log.Conversation(ctx, conversationID)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // by id
	for entry, err := range rs.log.Read(ctx, conversation, continuo.Range{Backward: true}) {
		switch {
		case err != nil:
			return nil, err
		case entry.Hidden:
		case entry.RunID != runID || entry.NodeID != nodeID:
			return nil, nil
		case entry.PartType == continuo.PartUndecided:
			names[entry.ToolCallID] = entry.ToolName
		case entry.Role == continuo.Assistant && !turn.IsEmptyFailure(&entry):
			return undecidedOf(&entry, names), nil
		}
	}
	return nil, nil
}

func undecidedOf(answer *continuo.Entry, names map[string]string) (asked []workflow.WaitingCall) {
	for _, call := range answer.ToolCalls {
		if name, ok := names[call.ID]; ok {
			asked = append(asked, workflow.WaitingCall{ID: call.ID, Name: name, Arguments: call.Arguments})
		}
	}
	return asked
}

// List lists runs, the newest first. A run whose steps all wait for a decision on a tool call has the state waiting,
// although its index says running: no event can be recorded while calls are open.
func (rs *Runs) List(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	if query.State != continuo.RunRunning && query.State != continuo.RunWaiting {
		found, err := rs.log.Runs().Runs(ctx, query)
		if err != nil {
			return nil, err
		}
		return found, rs.correctWaitingStates(ctx, found)
	}
	found, err := rs.runsInState(ctx, query, continuo.RunRunning)
	if err == nil && query.State == continuo.RunWaiting {
		var held []continuo.Run
		held, err = rs.runsInState(ctx, query, continuo.RunWaiting)
		found = append(found, held...)
	}
	slices.SortFunc(found, func(a, b continuo.Run) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), strings.Compare(b.ID, a.ID))
	})
	if query.Limit > 0 && len(found) > query.Limit {
		found = found[:query.Limit]
	}
	return found, err
}

// runsInState returns the first runs that have the state indexed in the index and the query's state by their turns.
func (rs *Runs) runsInState(ctx context.Context, query continuo.RunQuery, indexed continuo.RunState) (found []continuo.Run, err error) {
	requested := query.State
	query.State = indexed
	for {
		page, err := rs.log.Runs().Runs(ctx, query)
		if err == nil {
			err = rs.correctWaitingStates(ctx, page)
		}
		if err != nil {
			return nil, err
		}
		more := query.Limit > 0 && len(page) >= query.Limit
		if more {
			query.Before = continuo.RunCursor{StartedAt: page[len(page)-1].StartedAt, ID: page[len(page)-1].ID}
		}
		found = append(found, slices.DeleteFunc(page, func(run continuo.Run) bool { return run.State != requested })...)
		if !more || len(found) >= query.Limit {
			return found, nil
		}
	}
}

// correctWaitingStates corrects the states of those runs that wait for a decision on a call.
func (rs *Runs) correctWaitingStates(ctx context.Context, runs []continuo.Run) error {
	for i := range runs {
		if _, cycle := continuo.CrewOf(runs[i].WorkflowID); cycle || runs[i].State != continuo.RunRunning {
			continue
		}
		status, err := rs.status(ctx, runs[i])
		if errors.Is(err, continuo.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		runs[i].State = status.State
	}
	return nil
}
