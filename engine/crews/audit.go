package crews

import (
	"context"
	"fmt"

	"github.com/continuo-log/continuo/engine/internal/brief"

	continuo "github.com/continuo-log/continuo"
)

// RoleRound is one request to a role, and its result.
type RoleRound struct {
	// Round counts the role's requests in the conversation, from 1.
	Round int `json:"round" minimum:"1"`
	// Seq is the entry with the answer: it names the request, which can be shown byte for byte.
	Seq    int64  `json:"seq"`
	RunID  string `json:"run_id"` // the cycle
	TurnID string `json:"turn_id"`
	// At is the newest seq that the request could see.
	At     int64 `json:"at"`
	Cursor int64 `json:"cursor"` // the role's cursor after the answer
	Bytes  int   `json:"request_bytes"`
	// Placeholder says that the role had nothing to add.
	Placeholder bool   `json:"placeholder,omitempty"`
	Calls       int    `json:"calls,omitempty"`  // how many tools the answer called; absent for none
	Failed      string `json:"failed,omitempty"` // why the answer is not complete
}

// RoleRounds lists the requests to a role of a crew in its session's conversation, the oldest first. A turn that the
// role passed because nothing was new has no request.
func (cs *Crews) RoleRounds(ctx context.Context, session Session, role string) ([]RoleRound, error) {
	conversation, err := cs.log.Find(ctx, session.Scope, session.session())
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", brief.Shorten(session.session(), 60), err)
	}
	if role, err = cs.roleName(ctx, conversation, session.Crew, role); err != nil {
		return nil, err
	}
	return cs.rounds(ctx, conversation, session.Crew, role)
}

// rounds lists the requests of a role by its role_name.
func (cs *Crews) rounds(ctx context.Context, conversation continuo.Conversation, crewID, role string) ([]RoleRound, error) {
	rounds := []RoleRound{}
	for entry, err := range cs.log.Read(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return nil, err
		}
		id, ok := continuo.CrewOf(entry.WorkflowID)
		if !ok || id != crewID || entry.NodeID != role || entry.Role != continuo.Assistant || entry.Round == nil {
			continue
		}
		round := RoleRound{
			Round: len(rounds) + 1, Seq: entry.Seq, RunID: entry.RunID, TurnID: entry.TurnID, At: entry.Round.At, Cursor: entry.Round.Cursor,
			Bytes: entry.Round.RequestBytes, Placeholder: entry.IsPlaceholder(), Calls: len(entry.ToolCalls),
		}
		if entry.Error != nil {
			round.Failed = entry.Error.Message
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}
