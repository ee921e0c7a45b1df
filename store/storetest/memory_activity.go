package storetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// addUsage counts the requests that new entries answer. Entries that are put again do not count twice.
func (c *memoryConversation) addUsage(entries []continuo.Entry) {
	if c.deleted {
		return
	}
	for _, used := range continuo.UsageOf(entries) {
		at := slices.IndexFunc(c.usage, func(u continuo.UsageCount) bool { return u.Day == used.Day && u.Model == used.Model })
		switch {
		case at < 0:
			c.usage = append(c.usage, used)
		case used.LastSeq > c.usage[at].LastSeq:
			c.usage[at].Add(used)
		}
	}
}

// isActive reports whether the query's filters by activity select the conversation.
func (c *memoryConversation) isActive(query continuo.ConversationQuery) bool {
	switch {
	case query.Mode != "" && c.ActiveMode != query.Mode,
		query.ParentID != "" && c.ParentID != query.ParentID,
		!strings.HasPrefix(c.Key, query.KeyPrefix),
		query.Model != "" && !slices.ContainsFunc(c.usage, func(u continuo.UsageCount) bool { return u.Model == query.Model }),
		!query.Since.IsZero() && c.UpdatedAt.Truncate(time.Second).Before(query.Since.Truncate(time.Second)):
		return false
	}
	return query.State == "" || query.State == c.state()
}

func (c *memoryConversation) state() continuo.ActivityState {
	turn := c.newestTurn()
	runs := slices.ContainsFunc(c.runs, func(r continuo.Run) bool { return r.State == continuo.RunRunning || r.State == continuo.RunWaiting })
	switch {
	case turn.State == continuo.TurnRunning || runs:
		return continuo.ActivityActive
	case turn.State == continuo.TurnFailed:
		return continuo.ActivityFailed
	}
	return continuo.ActivityIdle
}

// newestTurn is the newest turn that is not void.
func (c *memoryConversation) newestTurn() (newest continuo.Turn) {
	for _, t := range c.turns {
		if t.State != continuo.TurnVoid && cmp.Or(t.StartedAt.Compare(newest.StartedAt), cmp.Compare(t.ID, newest.ID)) > 0 {
			newest = t.at(time.Now())
		}
	}
	return newest
}

func (m *memory) Activities(ctx context.Context, ids []string) ([]continuo.Activity, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []continuo.Activity
	for _, id := range ids {
		c, err := m.live(id)
		if err != nil {
			continue
		}
		a := continuo.Activity{ConversationID: id, Turn: c.newestTurn(), Usage: slices.Clone(c.usage)}
		slices.SortFunc(a.Usage, func(a, b continuo.UsageCount) int { return cmp.Compare(a.LastSeq, b.LastSeq) })
		for _, child := range m.conversations {
			if child.ParentID == id && !child.deleted && child.Kind != continuo.KindBranch {
				a.Children++
			}
		}
		for _, run := range c.runs {
			if run.EndedAt.IsZero() && cmp.Or(run.StartedAt.Compare(a.Run.StartedAt), cmp.Compare(run.ID, a.Run.ID)) > 0 {
				a.Run = run
			}
		}
		found = append(found, a)
	}
	return found, nil
}

func (m *memory) Totals(ctx context.Context, query continuo.ConversationQuery) (totals continuo.Totals, err error) {
	if err := m.begin(ctx); err != nil {
		return totals, err
	}
	defer m.mu.Unlock()
	for _, c := range m.conversations {
		if !c.isListed(query) {
			continue
		}
		totals.Conversations++
		for _, used := range c.usage {
			at := slices.IndexFunc(totals.Usage, func(u continuo.UsageCount) bool { return u.Day == used.Day && u.Model == used.Model })
			if at < 0 {
				at, totals.Usage = len(totals.Usage), append(totals.Usage, continuo.UsageCount{Day: used.Day, Model: used.Model})
			}
			totals.Usage[at].Add(used)
			totals.Usage[at].LastSeq, totals.Usage[at].Shares = 0, ""
		}
	}
	slices.SortFunc(totals.Usage, func(a, b continuo.UsageCount) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model))
	})
	return totals, nil
}
