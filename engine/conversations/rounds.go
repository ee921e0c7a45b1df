package conversations

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Round is one request to a model, by the entry that answers it.
type Round struct {
	// Seq is that of the answer.
	Seq       int64     `json:"seq"`
	CreatedAt time.Time `json:"created_at"`
	TurnID    string    `json:"turn_id,omitempty"`
	AgentID   string    `json:"agent_id,omitempty"`
	RunID     string    `json:"run_id,omitempty"`
	NodeID    string    `json:"node_id,omitempty"`
	// Author is the role of a crew that was asked.
	Author *continuo.Author `json:"author,omitempty"`
	// Error is why the answer is not complete.
	Error *continuo.TurnError `json:"error,omitempty"`
	// Calls counts the calls of tools in the answer.
	Calls int             `json:"calls,omitempty"`
	Round *continuo.Round `json:"round"`
}

// RoundQuery selects a page of rounds: those below Before, descending, or all with 0; or, with Ascending, those above After.
type RoundQuery struct {
	Before, After int64
	Ascending     bool
	Limit         int // at least 1
}

// maxRoundScan bounds how many entries a page of rounds is searched in: a conversation that was imported has none.
const maxRoundScan = 2000

// Rounds lists the requests of a conversation. Next is the seq at which the next page continues, as Before or After; 0 at
// the end. A page may be short although there are more.
func (cv *Conversations) Rounds(ctx context.Context, conversation continuo.Conversation, query RoundQuery) (found []Round, next int64, err error) {
	within := continuo.Range{Backward: true, Expect: 4 * query.Limit}
	if query.Before > 0 {
		within.To = query.Before - 1
	}
	if query.Ascending {
		within.Backward, within.From, within.To = false, query.After+1, 0
	}
	if query.Before == 1 && !query.Ascending || conversation.LastSeq == 0 {
		return nil, 0, nil
	}
	scanned := 0
	for entry, err := range cv.log.ReadShared(ctx, conversation, within) {
		if err != nil {
			return nil, 0, err
		}
		if len(found) == query.Limit || scanned == maxRoundScan {
			return found, beside(entry.Seq, within.Backward), nil
		}
		scanned++
		if entry.Round != nil {
			found = append(found, roundOf(entry))
		}
	}
	return found, 0, nil
}

// beside is the bound of a page whose first entry has a seq.
func beside(seq int64, backward bool) int64 {
	if backward {
		return seq + 1
	}
	return seq - 1
}

func roundOf(entry *continuo.Entry) Round {
	return Round{
		Seq: entry.Seq, CreatedAt: entry.CreatedAt, TurnID: entry.TurnID, AgentID: entry.AgentID, RunID: entry.RunID, NodeID: entry.NodeID,
		Author: entry.Author, Error: entry.Error, Calls: len(entry.ToolCalls), Round: entry.Round,
	}
}
