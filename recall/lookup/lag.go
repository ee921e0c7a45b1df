package lookup

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// lag is how many entries are not indexed.
func lag(unindexed []continuo.Range) (entries int64) {
	for _, r := range unindexed {
		entries += r.To - r.From + 1
	}
	return entries
}

// catchUp indexes what is searched, for at most the patience of the request.
func (f Finder) catchUp(ctx context.Context, request *Request, isNarrow bool) error {
	if isNarrow {
		return index.Searcher{Log: f.Log, Store: f.Store}.CatchUp(ctx, request.Conversation, request.Patience)
	}
	scope := index.Scope{ProjectID: request.Conversation.ProjectID}
	_, err := (index.Indexer{Log: f.Log, Store: f.Store}).Run(ctx, scope, time.Now().Add(request.Patience))
	return err
}

// catchUpOthers indexes the other conversations of the scope that wait for it: what they have is found only by the index.
func (f Finder) catchUpOthers(ctx context.Context, request *Request) error {
	waiting, err := f.Store.Unindexed(ctx, index.UnindexedQuery{ProjectID: request.Conversation.ProjectID, Limit: maxWaiting})
	if err != nil {
		return err
	}
	until := time.Now().Add(importPatience)
	for i := range waiting {
		other := &waiting[i].Conversation
		isSearched := other.UserID == request.Conversation.UserID || request.Scope == Project && (other.UserID == "" || !request.ForUser)
		if other.ID == request.Conversation.ID || !isSearched || other.Kind != continuo.KindUser || waiting[i].Indexed >= other.LastSeq {
			continue
		}
		done, err := (index.Indexer{Log: f.Log, Store: f.Store}).Run(ctx, index.Scope{ConversationID: other.ID}, until)
		if !done || err != nil {
			return err
		}
	}
	return nil
}
