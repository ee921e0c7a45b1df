package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// Change changes the values that the newest entry of a conversation has, and returns them; a nil change reads them. The
// conversation, which is found by the key of another one in its project, is created with the first change. Where another
// process was faster, the change is made again, to the values of that process.
func Change[Value any](ctx context.Context, log *continuo.Log, like continuo.Conversation, vendor string, change func(map[string]Value)) (map[string]Value, error) {
	like.Kind = continuo.KindSide
	for {
		conversation, err := log.Find(ctx, continuo.Scope{ProjectID: like.ProjectID}, like.Key)
		missing := errors.Is(err, continuo.ErrNotFound)
		switch {
		case missing && change == nil:
			return map[string]Value{}, nil
		case missing:
			conversation, err = log.Create(ctx, like)
			if errors.Is(err, continuo.ErrExists) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		values, err := newest[Value](ctx, log, conversation, vendor)
		if err != nil || change == nil {
			return values, err
		}
		change(values)
		text, err := json.Marshal(values)
		if err != nil {
			return nil, fmt.Errorf("the state is no JSON: %w", err)
		}
		record := Message{Vendor: vendor, Own: text}.Record()
		_, err = log.Append(ctx, conversation.ID, []continuo.Entry{record}, continuo.AppendOptions{ExpectSeq: conversation.LastSeq + 1})
		var faster *continuo.ConflictError
		if errors.As(err, &faster) {
			continue
		}
		return values, err
	}
}

// newest is the values that a conversation's newest entry has.
func newest[Value any](ctx context.Context, log *continuo.Log, conversation continuo.Conversation, vendor string) (map[string]Value, error) {
	values := map[string]Value{}
	for entry, err := range log.ReadShared(ctx, conversation, continuo.Range{Backward: true, Expect: 1}) {
		if err != nil {
			return nil, err
		}
		if form := entry.Vendor[vendor]; form != nil {
			return values, json.Unmarshal(form, &values)
		}
		break
	}
	return values, nil
}
