package search

import (
	"context"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/tool"
)

// patience bounds how long a search by words first updates the index of the conversation; entries that the
// index lacks then are read from the log.
const patience = 2 * time.Second

// candidates yields the entries of the query's range that may match, newest first: for words those that the
// index finds, for an expression all of them.
func (t Tool) candidates(ctx context.Context, call tool.Call, query *query) iter.Seq2[index.Candidate, error] {
	if query.expression == nil {
		_ = t.searcher().CatchUp(ctx, call.Conversation, patience) // on failure more entries are read from the log
		return t.searcher().Candidates(ctx, call.Conversation, query.words, query.from, query.to)
	}
	return func(yield func(index.Candidate, error) bool) {
		for entry, err := range t.Log.Read(ctx, call.Conversation, continuo.Range{From: query.from, To: query.to, Backward: true}) {
			candidate := index.Candidate{Hit: index.Hit{Seq: entry.Seq}, Conversation: call.Conversation, Entry: entry}
			if !yield(candidate, err) {
				return
			}
		}
	}
}

// maxLarge bounds how many large outputs are counted.
const maxLarge = 1000

// countLarge counts the outputs of which the index has only a preview and that the page does not show, as far
// as the search went.
func (t Tool) countLarge(ctx context.Context, call tool.Call, query *query, page *page) {
	if query.expression != nil || !query.takes(continuo.Tool) {
		return
	}
	from := query.from
	switch {
	case page.full:
		from = page.last
	case !page.done && page.searched > 0:
		from = page.searched
	case !page.done:
		return
	}
	for seq, err := range t.searcher().LargeOutputs(ctx, call.Conversation, from, query.to) {
		if err != nil || page.inPart == maxLarge {
			return // the note is optional
		}
		if !page.found[seq] {
			page.inPart++
		}
	}
}

// ownGroup returns the seq of the answer that made the call, or the seq after the newest entry when the call
// is not from the conversation's newest group.
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
