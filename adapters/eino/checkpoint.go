package eino

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// CheckPoints is a checkpoint store over a log: compose.CheckPointStore and adk.CheckPointStore, with Delete. It is safe for
// concurrent use, also by several processes that share a store.
//
// The checkpoints of one id are the entries of a conversation of the kind side, hidden from models. The newest one counts; the
// earlier ones stay until Delete.
type CheckPoints struct {
	log     *continuo.Log
	options Options
}

// NewCheckPoints makes a checkpoint store over a log, whose store the caller closes.
func NewCheckPoints(log *continuo.Log, options Options) *CheckPoints {
	options.Project = cmp.Or(options.Project, continuo.DefaultProject)
	return &CheckPoints{log: log, options: options}
}

func (c *CheckPoints) conversation(id string) continuo.Conversation {
	return continuo.Conversation{
		ProjectID: c.options.Project, UserID: c.options.UserID, Key: mirror.Key("eino-checkpoint", c.options.UserID, id), Title: "Checkpoint " + id, Kind: continuo.KindSide,
	}
}

// Set stores a checkpoint under an id. It is durable when Set returns.
func (c *CheckPoints) Set(ctx context.Context, id string, checkPoint []byte) error {
	data, err := json.Marshal(checkPoint)
	if err != nil {
		return err
	}
	conversation, err := mirror.Open(ctx, c.log, c.conversation(id))
	if err != nil {
		return fmt.Errorf("eino: checkpoint %s: %w", id, err)
	}
	record := mirror.Message{Vendor: vendor, Own: data}.Record()
	if _, err := c.log.Append(ctx, conversation.ID, []continuo.Entry{record}, continuo.AppendOptions{}); err != nil {
		return fmt.Errorf("eino: checkpoint %s: %w", id, err)
	}
	return nil
}

// Get returns the checkpoint that was stored last under an id, and whether there is one.
func (c *CheckPoints) Get(ctx context.Context, id string) ([]byte, bool, error) {
	conversation, err := mirror.Find(ctx, c.log, c.conversation(id))
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("eino: checkpoint %s: %w", id, err)
	}
	for entry, err := range c.log.ReadShared(ctx, conversation, continuo.Range{Backward: true, Expect: 1}) {
		if err != nil {
			return nil, false, fmt.Errorf("eino: checkpoint %s: %w", id, err)
		}
		data := entry.Vendor[vendor]
		if data == nil { // it was redacted
			return nil, false, nil
		}
		var checkPoint []byte
		if err := json.Unmarshal(data, &checkPoint); err != nil {
			return nil, false, fmt.Errorf("eino: checkpoint %s: %w", id, err)
		}
		return checkPoint, true, nil
	}
	return nil, false, nil
}

// Delete deletes all checkpoints of an id; none is no error.
func (c *CheckPoints) Delete(ctx context.Context, id string) error {
	if err := mirror.Remove(ctx, c.log, c.conversation(id)); err != nil {
		return fmt.Errorf("eino: checkpoint %s: %w", id, err)
	}
	return nil
}
