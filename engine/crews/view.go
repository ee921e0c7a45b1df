package crews

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/internal/brief"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// chooseRole resolves what a role's turns use, without the role's view.
func (cs *Crews) chooseRole(role *crew.Role) (catalog.ResolvedTurn, error) {
	name := role.Connector
	if name == crew.ConnectorModel {
		name = role.Model
	}
	return cs.catalog.ResolveRole(name, contexts.RoleViewPrefix+role.Name, role.Tools)
}

// newestBehindSummary is the default number of messages that are shown whole after a summary.
const newestBehindSummary = 20

// sessionMemory says what a role's model or agent remembers of what the role was shown.
type sessionMemory struct {
	remembers bool // it has a session
	whole     bool // but its session has lost everything, or is new
}

// roleView is the present view of a role. A role that remembers is not sent its system prompt with each request: the
// view repeats it at intervals.
func (cs *Crews) roleView(state *crew.State, role *crew.Role, c catalog.ResolvedTurn, memory sessionMemory) (crewview.View, error) {
	definition, err := cs.catalog.View(window.Codex)
	if err != nil {
		return crewview.View{}, err
	}
	view := crewview.View{View: definition}
	roleState := state.Now.Role(role.Name)
	view.Name, view.Opener, view.Marker = contexts.RoleViewPrefix+role.Name, window.OpenerNone, ""
	view.Profile = window.ProfileNone
	view.Limits = window.Limits{Chars: cmp.Or(role.View.Chars, view.Limits.Chars), Tokens: cmp.Or(role.View.Tokens, view.Limits.Tokens)}
	kind := role.View.Kind
	if kind == "" {
		kind = usualKind(memory.remembers)
	}
	whole := memory.remembers && memory.whole
	view.Role = crewview.Role{
		Name: role.Name, Crew: state.Crew.ID, Kind: kind, Since: state.Now.Since, Cursor: roleState.Cursor, Notes: roleState.Notes,
		Remembers: memory.remembers, Whole: whole, Messages: cs.catalog.TakesMessages(c),
	}
	switch kind {
	case crewview.Window:
		view.Role.Newest = cmp.Or(role.View.Newest, cs.options.Defaults.Newest)
	case crewview.Summary:
		view.Role.Newest = cmp.Or(role.View.Newest, newestBehindSummary)
	}
	every := cmp.Or(state.Crew.ReminderInterval, cs.options.Defaults.ReminderInterval)
	if memory.remembers && !whole && roleState.Answers > 0 && roleState.Answers%every == 0 {
		view.Role.Reminder = role.SystemPrompt
	}
	return view, nil
}

// usualKind is the default kind of view.
func usualKind(remembers bool) crewview.Kind {
	if remembers {
		return crewview.Delta
	}
	return crewview.Full
}

// kindFor is the kind of view of a role with a model.
func kindFor(role *crew.Role, m model.Model) crewview.Kind {
	_, remembers := m.(model.Sessions)
	return cmp.Or(role.View.Kind, usualKind(remembers))
}

// roleSystem makes the system messages of a role.
func (cs *Crews) roleSystem(c *crew.Crew, role *crew.Role) ([]string, error) {
	var others []prompt.Member
	for i := range c.Roles {
		if other := &c.Roles[i]; other.Name != role.Name {
			others = append(others, member(other))
		}
	}
	return cs.catalog.Options.Prompts.Crew(role.SystemPrompt, member(role), others)
}

// member is how a role is described to the other roles.
func member(role *crew.Role) prompt.Member {
	return prompt.Member{DisplayName: role.DisplayName, IsModerator: role.IsModerator}
}

// roleRunner makes the runner of a role's turn. The caller sets its time limit.
func (cs *Crews) roleRunner(state *crew.State, role *crew.Role, c catalog.ResolvedTurn, m model.Model, memory sessionMemory) (*turn.Runner, error) {
	view, err := cs.roleView(state, role, c, memory)
	if err != nil {
		return nil, err
	}
	c.View, c.Role = view.View, &view.Role
	if !memory.remembers || memory.whole || state.Now.Role(role.Name).Session == "" { // else its session has them
		if c.System, err = cs.roleSystem(state.Crew, role); err != nil {
			return nil, err
		}
	}
	runner := cs.catalog.Runner(c)
	runner.Model = m
	return runner, nil
}

// expected is what a role's model or agent will remember, according to the log.
func expected(state *crew.State, role *crew.Role, m model.Model) sessionMemory {
	_, remembers := m.(model.Sessions)
	return sessionMemory{remembers: remembers, whole: remembers && state.Now.Role(role.Name).Session == ""}
}

// ChooseRoleAt resolves what a request to a role of a conversation's crew would use at a seq of the log. The crew is
// the one of the newest cycle at that seq, or the named one; its state is that at the seq.
func (cs *Crews) ChooseRoleAt(ctx context.Context, conversation continuo.Conversation, crewID, roleName string, at int64) (catalog.ResolvedTurn, error) {
	state, err := cs.crewAt(ctx, conversation, crewID, at)
	if err != nil {
		return catalog.ResolvedTurn{}, err
	}
	role, err := state.Crew.Find(roleName)
	if err != nil {
		return catalog.ResolvedTurn{}, err
	}
	found, err := cs.chooseRole(role)
	if err != nil {
		return catalog.ResolvedTurn{}, err
	}
	view, err := cs.roleView(state, role, found, expected(state, role, found.Upstream.Model))
	if err != nil {
		return catalog.ResolvedTurn{}, err
	}
	found.View, found.Role = view.View, &view.Role
	found.System, err = cs.roleSystem(state.Crew, role)
	return found, err
}

// roleName is the role_name of the crew's role that a person names. A name without a role in the crew is returned
// unchanged where the log has rounds of it: the role was removed from the crew.
func (cs *Crews) roleName(ctx context.Context, conversation continuo.Conversation, crewID, name string) (string, error) {
	state, err := cs.crewAt(ctx, conversation, crewID, conversation.LastSeq)
	if err != nil {
		return name, nil //nolint:nilerr // the caller's search for the role's rounds reports what is missing
	}
	role, err := state.Crew.Find(name)
	if err == nil {
		return role.Name, nil
	}
	if rounds, readErr := cs.rounds(ctx, conversation, crewID, name); readErr == nil && len(rounds) > 0 {
		return name, nil
	}
	return "", err
}

// crewAt is the state of a crew in a conversation at a seq: that of the newest cycle there.
func (cs *Crews) crewAt(ctx context.Context, conversation continuo.Conversation, crewID string, at int64) (*crew.State, error) {
	query := continuo.RunQuery{ProjectID: conversation.ProjectID, ConversationID: conversation.ID, Of: continuo.OfCrews, BegunBy: max(at, 1), Limit: 1}
	if crewID != "" {
		query.WorkflowID = continuo.CrewWorkflow(crewID)
	}
	newest, err := cs.log.Runs().Runs(ctx, query)
	if err != nil {
		return nil, err
	}
	if len(newest) > 0 {
		c := newCycle(cs, newest[0])
		err := c.Read(ctx, at, nil)
		return c.State, err
	}
	if crewID == "" {
		return nil, fmt.Errorf("%w: no crew had spoken in the conversation at entry %d", continuo.ErrNotFound, at)
	}
	found, err := cs.Get(crewID)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, fmt.Errorf("%w: crew %s had not spoken in the conversation at entry %d", continuo.ErrNotFound, brief.Shorten(crewID, 60), at)
	}
	if err != nil {
		return nil, err
	}
	return crew.NewState(found, ""), nil
}
