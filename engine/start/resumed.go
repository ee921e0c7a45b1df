package start

import (
	"context"

	continuo "github.com/continuo-log/continuo"
)

// Resumed describes the turn that another one resumes.
type Resumed struct {
	TurnID string `json:"turn_id"`
	// Response is the model's output up to where the turn broke off, preceded by the output of the turns that it had
	// resumed itself.
	Response string `json:"response"`
}

// Resumed finds the turn that a turn resumes; nil for a turn with an input of its own.
func (ts *Turns) Resumed(ctx context.Context, conversationID, turnID string) (*Resumed, error) {
	next, running := ts.keeper.Running(turnID)
	var err error
	if !running {
		next, err = ts.log.Turns().Turn(ctx, conversationID, turnID)
	}
	if err != nil || next.Resumes == "" {
		return nil, err
	}
	resumed := &Resumed{TurnID: next.Resumes}
	for id := next.Resumes; id != ""; {
		failed, err := ts.log.Turns().Turn(ctx, conversationID, id)
		if err != nil {
			return nil, err
		}
		answer, err := ts.failedAnswer(ctx, failed)
		if err != nil {
			return nil, err
		}
		if answer != nil {
			resumed.Response = answer.Content.String() + resumed.Response
		}
		id = failed.Resumes
	}
	return resumed, nil
}

// FailureOf is the error of the newest answer of a failed turn; nil where the log has none.
func (ts *Turns) FailureOf(ctx context.Context, failed continuo.Turn) (*continuo.TurnError, error) {
	answer, err := ts.failedAnswer(ctx, failed)
	if answer == nil {
		return nil, err
	}
	return answer.Error, err
}

// failedAnswer is the newest incomplete answer of a failed turn; nil where the log has none.
func (ts *Turns) failedAnswer(ctx context.Context, failed continuo.Turn) (*continuo.Entry, error) {
	conversation, err := ts.log.Conversation(ctx, failed.ConversationID) // the turn may have been closed just now
	if err != nil {
		return nil, err
	}
	for entry, err := range ts.log.Read(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return nil, err
		}
		if entry.TurnID == failed.ID && entry.Error != nil {
			return &entry, nil
		}
	}
	return nil, nil
}
