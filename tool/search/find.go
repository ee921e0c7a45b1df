package search

import (
	"context"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// candidates yields the entries of the query's stretch that may match, newest first, as far as they stand
// before the call's own group. Here these are all of them; a full-text index would yield fewer.
func (t Tool) candidates(ctx context.Context, call tool.Call, query *query) iter.Seq2[continuo.Entry, error] {
	return func(yield func(continuo.Entry, error) bool) {
		own, err := t.ownGroup(ctx, call)
		if err != nil {
			yield(continuo.Entry{}, err)
			return
		}
		to := min(query.to, own-1)
		if to < query.from {
			return // To 0 would be the newest entry
		}
		t.Log.Read(ctx, call.Conversation, continuo.Range{From: query.from, To: to, Backward: true})(yield)
	}
}

// ownGroup returns the seq of the answer that made the call, or the one after the newest entry when the
// call does not come from the conversation's newest group.
func (t Tool) ownGroup(ctx context.Context, call tool.Call) (int64, error) {
	for entry, err := range t.Log.Read(ctx, call.Conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return 0, err
		}
		if entry.Hidden || entry.Role == continuo.Tool {
			continue // outside of the group, or a part of it
		}
		for _, made := range entry.ToolCalls {
			if made.ID == call.ID {
				return entry.Seq, nil
			}
		}
		break
	}
	return call.Conversation.LastSeq + 1, nil
}
