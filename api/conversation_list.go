package api

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/conversations"
)

// ConversationFilter selects conversations.
type ConversationFilter struct {
	// List those that are archived instead.
	Archived bool `query:"archived" default:"false"`
	UserFilter
	MetadataFilter
	// What the conversations are the logs of: users and models, delegated tasks, the work of agents
	// on those, clients' calls beside their conversations, such as for a title, or the memories of a scope; `all` has
	// all but memories.
	Kind string `query:"kind" enum:"user,task,agent,side,memory,all" default:"user"`
	// Only those in which a turn or a run is in progress (`running`), a person has to decide (`waiting`), the newest turn
	// failed (`failed`), or nothing of this is so (`idle`). With `running` and `waiting` a page may be short, or empty, while
	// `has_more` is true.
	State *string `query:"state" enum:"idle,running,waiting,failed"`
	// Only those in which this model has answered, by its provider's name.
	Model *string `query:"model" doc:"minLength=1"`
	// Only those that record a session of this client, such as `codex` or `claude-code`.
	Client *string `query:"client" pattern:"^[a-z][a-z0-9-]*$"`
	// Only those in this mode.
	Mode *string `query:"mode" enum:"chat,agent,run"`
	// Only those that changed at this time or later, to the second, in the form of RFC 3339.
	Since *string `query:"since" doc:"format=date-time"`
	// Only the forks of this conversation, and the calls beside it. Its id.
	ParentID *string `query:"parent_id" doc:"minLength=1"`

	since time.Time
}

// Check refuses what cannot be filtered by.
func (in *ConversationFilter) Check() (err error) {
	if in.Kind == "" {
		return Refuse("kind", "kind is empty: leave it out for people's conversations")
	}
	for _, given := range []struct {
		name  string
		value *string
	}{{"model", in.Model}, {"client", in.Client}, {"parent_id", in.ParentID}, {"since", in.Since}} {
		if given.value != nil && *given.value == "" {
			return Refuse(given.name, "%s is empty: leave it out for all", given.name)
		}
	}
	if in.Since == nil {
		return nil
	}
	if in.since, err = time.Parse(time.RFC3339, *in.Since); err != nil {
		return Refuse("since", "since must be a time such as 2026-11-21T15:00:00Z, not %q", Bounded(*in.Since))
	}
	return nil
}

// query is the filter for the store; its kind is set where it is not all.
func (in *ConversationFilter) query(scope continuo.Scope) (query continuo.ConversationQuery, err error) {
	query = continuo.ConversationQuery{
		ProjectID: scope.ProjectID, Archived: in.Archived, Labels: in.Labels, Model: valueOf(in.Model), Mode: continuo.Mode(valueOf(in.Mode)),
		ParentID: valueOf(in.ParentID), Since: in.since,
	}
	if in.Client != nil {
		query.KeyPrefix = conversations.ClientPrefix(*in.Client)
	}
	if in.Kind != "user" && in.Kind != "all" {
		query.Kind = continuo.Kind(in.Kind)
	}
	switch valueOf(in.State) {
	case conversations.StateRunning, conversations.StateWaiting:
		query.State = continuo.ActivityActive
	case conversations.StateFailed:
		query.State = continuo.ActivityFailed
	case conversations.StateIdle:
		query.State = continuo.ActivityIdle
	}
	query.UserID, err = in.user(scope)
	return query, err
}

// ConversationQuery selects a page of conversations.
type ConversationQuery struct {
	// How many to give at most.
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor
	ConversationFilter
	// What comes first: the newest change, the newest conversation, or the one whose own requests used the most tokens, or
	// cost the most. All but the first read every conversation that the filters select.
	Sort string `query:"sort" enum:"updated,created,tokens,cost" default:"updated"`
	// Whether to add up what the filters select, on all pages.
	Totals bool `query:"totals" default:"false"`
}

// conversationCursor is a cursor of the list of conversations.
type conversationCursor struct {
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	ID        string    `json:"id"`
	Value     int64     `json:"value,omitempty"` // of a sorted list
}

// ConversationRow is a conversation in a list, with its activity.
type ConversationRow struct {
	conversations.Row
	// What a person has to decide; absent unless `state` is `waiting`.
	WaitingFor *WaitingFor `json:"waiting_for,omitempty"`
}

// WaitingFor is what a conversation waits for a person for.
type WaitingFor struct {
	// The turn whose call waits; its `approvals` decide on it.
	TurnID string `json:"turn_id,omitempty"`
	// The first call that waits.
	Call *ToolCallEvent `json:"call,omitempty"`
	// The run that waits; its `approvals` decide on it.
	RunID string `json:"run_id,omitempty"`
}

// ConversationList is a page of conversations.
type ConversationList struct {
	List[ConversationRow]
	// What the filters select, on all pages; absent unless `totals` asks for it. With `running` and `waiting` it is of both.
	Totals *ConversationTotals `json:"totals,omitempty"`
}

// ConversationTotals are sums over conversations.
type ConversationTotals struct {
	Conversations int64 `json:"conversations"`
	conversations.Usage
}

// ListConversations lists conversations.
//
// The one that changed last comes first, unless `sort` says otherwise. One that changes while the list is paged moves to
// the front. What a row says of requests is counted as they are answered: its cost does not depend on the conversation's
// length.
func (s *Service) ListConversations(ctx context.Context, scope continuo.Scope, in ConversationQuery) (list ConversationList, err error) {
	query, err := in.page(scope)
	if err != nil {
		return list, err
	}
	find := s.Engine.Conversations.List
	if in.Kind == "all" {
		find = s.Engine.Conversations.ListAll
	}
	found, err := find(ctx, query)
	if err != nil {
		return list, err
	}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		next, err := s.Engine.Conversations.Position(ctx, query.Sort, found[in.Limit-1])
		if err != nil {
			return list, err
		}
		list.HasMore, list.NextCursor = true, WriteCursor(conversationCursor(next))
	}
	if list.Data, err = s.rows(ctx, found, valueOf(in.State)); err != nil || !in.Totals {
		return list, err
	}
	list.Totals, err = s.totals(ctx, query, in.Kind)
	return list, err
}

// page is the query of one page.
func (in *ConversationQuery) page(scope continuo.Scope) (continuo.ConversationQuery, error) {
	query, err := in.query(scope)
	if err != nil {
		return query, err
	}
	query.Limit = in.Limit + 1
	if in.Sort != "updated" {
		query.Sort = continuo.ConversationSort(in.Sort)
	}
	var position conversationCursor
	given, err := in.decode(&position)
	if given && position.UpdatedAt.IsZero() == (query.Sort == continuo.SortUpdated) {
		err = Refuse("cursor", "the cursor is one of a list in another order: give the sort that it was given with")
	}
	if given {
		query.Before = continuo.ConversationCursor(position)
	}
	return query, err
}

// rows completes conversations for a list, and leaves those out that turn out to have another state than the wanted one.
func (s *Service) rows(ctx context.Context, found []continuo.Conversation, state string) ([]ConversationRow, error) {
	rows, err := s.Engine.Conversations.Rows(ctx, found)
	if err != nil {
		return nil, err
	}
	shown := []ConversationRow{}
	for _, row := range rows {
		one, err := s.row(ctx, row)
		if err != nil {
			return nil, err
		}
		if state == "" || state == one.State {
			shown = append(shown, one)
		}
	}
	return shown, nil
}

// row adds to a row what it waits for. Only turns in progress are asked.
func (s *Service) row(ctx context.Context, row conversations.Row) (ConversationRow, error) {
	shown := ConversationRow{Row: row}
	if row.State == conversations.StateWaiting {
		shown.WaitingFor = &WaitingFor{RunID: row.Run.ID}
	}
	if row.Turn.State != continuo.TurnRunning {
		return shown, nil
	}
	waiting, err := s.Engine.Turns.Waiting(ctx, row.Turn)
	if err != nil || len(waiting) == 0 {
		return shown, err
	}
	call := waiting[0]
	shown.State = conversations.StateWaiting
	shown.WaitingFor = &WaitingFor{
		TurnID: row.Turn.ID, RunID: row.Run.ID,
		Call: &ToolCallEvent{ID: call.ID, Name: call.Name, Arguments: Bounded(call.Arguments), ExpiresAt: call.Until},
	}
	return shown, nil
}

func (s *Service) totals(ctx context.Context, query continuo.ConversationQuery, kind string) (*ConversationTotals, error) {
	kinds := []continuo.Kind{query.Kind}
	if kind == "all" {
		kinds = nil
	}
	totals, err := s.Engine.Conversations.Totals(ctx, query, kinds...)
	if err != nil {
		return nil, err
	}
	return &ConversationTotals{Conversations: totals.Conversations, Usage: conversations.SumOf(totals.Usage)}, nil
}
