package search

import (
	"context"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/tool"
)

// rank shows what words find, the best first.
func (t Tool) rank(ctx context.Context, call tool.Call, query *query, page *page) error {
	page.ranked = true
	own, err := t.ownGroup(ctx, call)
	if err != nil {
		return err
	}
	if query.to = min(query.to, own-1); query.to < query.from {
		page.done = true // To 0 would be the newest entry
		return nil
	}
	conversation := call.Conversation
	ctx = continuo.WithOwner(ctx, conversation.ProjectID, conversation.UserID) // requests to other servers are charged to it
	ranking, err := t.searcher().Rank(ctx, index.Request{
		ProjectID: conversation.ProjectID, Conversation: &conversation, Query: query.words, Role: query.role, From: query.from, To: query.to,
	})
	if err != nil {
		return err
	}
	if ranking.Found, err = t.present(ctx, conversation, ranking.Found); err != nil {
		return err
	}
	page.inPart, page.more, page.shown = ranking.Previews, ranking.More, min(page.skip, len(ranking.Found))
	found := ranking.Found[page.shown:]
	for i := range found {
		if !page.add(query.found(&found[i])) {
			return nil
		}
	}
	page.done = true
	return nil
}

// present returns the matches that no client has deleted. All are asked for, so that pages skip what was shown.
func (t Tool) present(ctx context.Context, conversation continuo.Conversation, found []search.Found) ([]search.Found, error) {
	seqs := make([]int64, len(found))
	for i := range found {
		seqs[i] = found[i].Entry.Seq
	}
	deleted, err := t.Log.Deleted(ctx, conversation, seqs)
	return slices.DeleteFunc(found, func(f search.Found) bool { return slices.Contains(deleted, f.Entry.Seq) }), err
}

// maxLarge bounds how many large outputs are counted.
const maxLarge = 1000

// countLarge counts the outputs of which the index has only a preview and that the page does not show.
func (t Tool) countLarge(ctx context.Context, call tool.Call, query *query, page *page) {
	if query.expression != nil || !query.takes(continuo.Tool) {
		return
	}
	if !page.done && !page.full || query.to < query.from {
		return
	}
	large := index.Searcher{Log: t.Log, Store: t.Index}
	for seq, err := range large.LargeOutputs(ctx, call.Conversation, query.from, query.to) {
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
