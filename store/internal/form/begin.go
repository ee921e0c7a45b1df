package form

import (
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// TurnBegin is a TurnBegin with its request and events as they are stored.
type TurnBegin struct {
	*continuo.TurnBegin
	Request, Events string
	Last            int64 // id of the last event; 0 when there is none
}

// EncodeBegin returns nil for a batch that begins no turn, and ErrInvalid for a turn that the batch cannot begin.
func EncodeBegin(batch continuo.Batch) (*TurnBegin, error) {
	if batch.Begin == nil {
		return nil, nil
	}
	row, turn := &TurnBegin{TurnBegin: batch.Begin}, &batch.Begin.Turn
	request, err := rawjson.Marshal(turn.TurnRequest)
	row.Request = string(request)
	if n := len(row.TurnBegin.Events); err == nil && n > 0 {
		row.Last = row.TurnBegin.Events[n-1].ID
		row.Events, err = EncodeEvents(row.TurnBegin.Events)
	}
	switch {
	case err != nil:
	case turn.ConversationID != batch.ConversationID:
		err = fmt.Errorf("it is of conversation %q, and the batch of %q", turn.ConversationID, batch.ConversationID)
	case len(batch.Turns) > 0:
		err = errors.New("its batch has updates of turns")
	}
	if err != nil {
		return nil, fmt.Errorf("begin turn %s: %w: %w", turn.ID, continuo.ErrInvalid, err)
	}
	return row, nil
}

// CheckCreate returns ErrInvalid for a conversation that the batch cannot create.
func CheckCreate(batch continuo.Batch) error {
	created := batch.Create
	switch {
	case created == nil:
		return nil
	case created.ID != batch.ConversationID:
		return fmt.Errorf("create conversation %s: %w: its batch is for %s", created.ID, continuo.ErrInvalid, batch.ConversationID)
	case batch.Begin == nil, batch.After != 0, created.LastSeq != 0, len(created.Lineage) > 0:
		return fmt.Errorf("create conversation %s: %w: its batch begins no turn, or the conversation has entries", created.ID, continuo.ErrInvalid)
	}
	return nil
}
