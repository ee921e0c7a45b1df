package crews

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/turn"
)

// Status is the state of a crew in a conversation.
type Status struct {
	Crew           string `json:"crew"` // its id
	Name           string `json:"name"` // for people
	ProjectID      string `json:"project_id"`
	ConversationID string `json:"conversation_id"`
	SessionID      string `json:"session_id"` // the conversation's key, or its id where it has none
	RunID          string `json:"run_id"`     // the newest cycle; its entries have it
	// State is that of the cycle. A stopped or failed cycle continues when a person resumes it; a new message begins
	// another one.
	State     continuo.RunState `json:"state"`
	Reason    string            `json:"reason,omitempty"` // why the cycle ended, failed or was stopped
	StartedAt time.Time         `json:"started_at"`
	UpdatedAt time.Time         `json:"updated_at"`
	FirstSeq  int64             `json:"first_seq"` // of the cycle
	LastSeq   int64             `json:"last_seq"`  // of the conversation, as far as it was read
	// Since is the newest entry that a reset hides from the roles; absent for none.
	Since      int64  `json:"since,omitempty"`
	Restorable bool   `json:"restorable"` // whether a reset can be taken back
	Next       string `json:"next"`       // the role whose turn is next
	// Speaking is the role whose turn is running, in any process; absent for none, and in streams.
	Speaking string       `json:"speaking,omitempty"`
	TurnID   string       `json:"turn_id,omitempty"` // the turn of the role that speaks
	Roles    []RoleStatus `json:"roles"`             // in the order in which they speak
}

// IsIdle reports whether every role has been shown everything: no role is due before a person sends a message.
func (s *Status) IsIdle() bool {
	return !slices.ContainsFunc(s.Roles, func(role RoleStatus) bool { return role.HasNews })
}

// RoleStatus is the state of a role of a crew.
type RoleStatus struct {
	Name        string `json:"role_name"`
	DisplayName string `json:"display_name"`
	AgentType   string `json:"agent_type"`
	Connector   string `json:"connector"`
	IsModerator bool   `json:"is_moderator,omitempty"`
	View        string `json:"view"`   // how much of the conversation it is shown: delta, full, window, summary or memory
	Cursor      int64  `json:"cursor"` // the seq through which the role was shown everything and has answered; 0 for nothing
	// CursorID is the id of the entry at the cursor; absent for none, and in streams.
	CursorID string `json:"cursor_id,omitempty"`
	Answers  int    `json:"answers"`           // without those in which it had nothing to add
	HasNews  bool   `json:"has_news"`          // after the cursor there is an entry that the role was not shown
	Session  string `json:"session,omitempty"` // its agent's name for the session that remembers; absent for none
	Notes    int64  `json:"notes,omitempty"`   // the seq of its newest notes; absent for none
	// Running says that its program runs in the process that answers.
	Running bool `json:"running"`
	// FinishReason is why its newest answer in the cycle is cut short; absent where it is complete.
	FinishReason string `json:"finish_reason,omitempty" enum:"length,content_filter"`
	// Failed says why it did not answer in its last turn of the cycle.
	Failed string `json:"failed,omitempty"`
	// RestsUntil is the end of its cooldown in this process after too many failed turns.
	RestsUntil time.Time `json:"rests_until,omitzero"`
}

// Status returns the state of a crew in its session's conversation; ErrNotFound where the crew has no cycle
// there.
func (cs *Crews) Status(ctx context.Context, session Session) (*Status, error) {
	conversation, c, err := cs.cycleOf(ctx, session)
	if errors.Is(err, durable.ErrCorrupt) {
		return cs.status(ctx, conversation, &crew.Crew{ID: session.Crew, Name: session.Crew}, c.Run)
	}
	if err != nil {
		return nil, err
	}
	return cs.statusOfCrew(ctx, conversation, c)
}

// status reads the state of a cycle; for one that cannot be read it returns the state in the index.
func (cs *Crews) status(ctx context.Context, conversation continuo.Conversation, found *crew.Crew, run continuo.Run) (*Status, error) {
	c := newCycle(cs, run)
	err := c.CatchUp(ctx)
	if errors.Is(err, durable.ErrCorrupt) {
		return &Status{
			Crew: found.ID, Name: found.Name, ProjectID: run.ProjectID, ConversationID: run.ConversationID, SessionID: sessionOf(conversation),
			RunID: run.ID, State: run.State, Reason: err.Error(), StartedAt: run.StartedAt, UpdatedAt: run.UpdatedAt, FirstSeq: run.FirstSeq, Roles: []RoleStatus{},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return cs.statusOfCrew(ctx, conversation, c)
}

// statusOfCrew returns the state of a cycle that was read to its end.
func (cs *Crews) statusOfCrew(ctx context.Context, conversation continuo.Conversation, c *crewCycle) (*Status, error) {
	status := c.status(conversation)
	running, err := cs.driver.RunningTurn(ctx, c.Run.ConversationID)
	if err != nil {
		return nil, err
	}
	if running != nil && running.RunID == c.Run.ID {
		status.Speaking, status.TurnID = running.NodeID, running.ID
	}
	for i := range status.Roles {
		if err := cs.cursorID(ctx, conversation, &status.Roles[i]); err != nil {
			return nil, err
		}
	}
	return status, nil
}

// status returns the state of the crew by the entries that were read.
func (c *crewCycle) status(conversation continuo.Conversation) *Status {
	state := c.State
	status := &Status{
		Crew: state.Crew.ID, Name: state.Crew.Name, ProjectID: c.Run.ProjectID, ConversationID: c.Run.ConversationID, SessionID: sessionOf(conversation),
		RunID: c.Run.ID, State: state.Run, Reason: state.Reason, StartedAt: c.Run.StartedAt, UpdatedAt: c.updated, FirstSeq: c.Run.FirstSeq, LastSeq: c.Next() - 1,
		Since: state.Now.Since, Restorable: state.Now.Before != nil, Next: state.Now.Next, Roles: []RoleStatus{},
	}
	for i := range state.Crew.Roles {
		role := &state.Crew.Roles[i]
		roleState := state.Now.Role(role.Name)
		running, until := c.crews.sessions.status(c.speaker(role))
		status.Roles = append(status.Roles, RoleStatus{
			Name: role.Name, DisplayName: role.DisplayName, AgentType: role.AgentType, Connector: role.Connector, IsModerator: role.IsModerator,
			View: c.crews.kindOf(role), Cursor: roleState.Cursor, Answers: roleState.Answers, HasNews: state.HasUnread(role.Name), Session: roleState.Session, Notes: roleState.Notes,
			Running: running, RestsUntil: until, Failed: state.Failed(role.Name), FinishReason: cutReason(c.answers[role.Name]),
		})
	}
	return status
}

// cutReason is the finish reason of an answer that is cut short; "" for any other.
func cutReason(answer *continuo.Entry) string {
	if answer == nil || answer.Error != nil || answer.Round == nil {
		return ""
	}
	if reason := answer.Round.FinishReason; reason == "length" || reason == "content_filter" {
		return reason
	}
	return ""
}

// kindOf is the kind of view of a role's next turn.
func (cs *Crews) kindOf(role *crew.Role) string {
	chosen, err := cs.chooseRole(role)
	if err != nil {
		return string(role.View.Kind)
	}
	return string(kindFor(role, chosen.Upstream.Model))
}

// cursorID finds the id of the entry at a role's cursor.
func (cs *Crews) cursorID(ctx context.Context, conversation continuo.Conversation, role *RoleStatus) error {
	if role.Cursor < 1 {
		return nil
	}
	for entry, err := range cs.log.Read(ctx, conversation, continuo.Range{From: role.Cursor, To: role.Cursor}) {
		if err != nil {
			return err
		}
		role.CursorID = entry.ID
	}
	return nil
}

func sessionOf(conversation continuo.Conversation) string {
	if conversation.Key != "" {
		return conversation.Key
	}
	return conversation.ID
}

// Progress is an item of a cycle's stream: an entry, or an event of the turn that is running.
type Progress struct {
	// Entry is an entry of the conversation since the cycle began, in the order of their seqs. Status is the crew's
	// state after it, where it has a RunEvent.
	Entry  *continuo.Entry
	Status *Status
	// Turn is a live event of a role's turn, Role the role's name. Like those of runs.Progress, these events are not
	// repeated.
	Turn *turn.Event
	Role string
}

// Follow yields the entries of a conversation since a cycle began with seqs above after, each once and in order,
// first the recorded ones and then new ones, with the live events of the cycle's turns between them. It ends when the
// cycle has ended, or with an error.
func (cs *Crews) Follow(ctx context.Context, run continuo.Run, after int64) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		conversation, err := cs.log.Conversation(ctx, run.ConversationID)
		if err != nil {
			yield(Progress{}, err)
			return
		}
		c := newCycle(cs, run)
		err = cs.driver.Watch(ctx, run, c, after, func(entry *continuo.Entry, running *continuo.Turn, event *turn.Event) bool {
			if event != nil {
				return yield(Progress{Turn: event, Role: running.NodeID}, nil)
			}
			progress := Progress{Entry: entry}
			if entry.RunEvent != nil {
				progress.Status = c.status(conversation)
			}
			return yield(progress, nil)
		})
		if err != nil {
			yield(Progress{}, err)
		}
	}
}
