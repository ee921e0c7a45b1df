package lookup

import (
	"context"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// read reads the chosen entries and those that are not indexed, in order.
func (f Finder) read(ctx context.Context, request Request, chosen []place, unindexed []continuo.Range) ([]Item, error) {
	left := int64(maxUnindexed)
	for _, r := range unindexed {
		for seq := r.To; seq >= r.From && left > 0; seq, left = seq-1, left-1 {
			chosen = append(chosen, place{request.Conversation.ID, seq})
		}
	}
	slices.SortFunc(chosen, comparePlaces)
	chosen = slices.Compact(chosen)
	owners, err := f.owners(ctx, &request, chosen)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	chosen = slices.DeleteFunc(chosen, func(at place) bool {
		owner := owners[at.conversation]
		return owner == nil || at.seq < 1 || at.seq > owner.last
	})
	entries := make([]*continuo.Entry, len(chosen))
	missing := f.Entries.get(owners, chosen, entries)
	places := make([]continuo.Place, len(missing))
	for i, n := range missing {
		places[i] = continuo.Place{Conversation: owners[chosen[n].conversation].Conversation, Seq: chosen[n].seq}
	}
	read, err := f.Log.EntriesAt(ctx, places)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	for i, entry := range read {
		id := places[i].Conversation.ID
		isHere := entry != nil && (id == request.Conversation.ID || entry.ConversationID == id) // otherwise it is found where it was written
		if isHere && Recallable(entry) {
			copied := *entry // not the page that it was read with
			entries[missing[i]] = &copied
		}
	}
	f.Entries.put(owners, chosen, entries, missing)
	items := make([]Item, 0, len(chosen))
	for i, entry := range entries {
		if entry != nil {
			items = append(items, itemOf(entry, owners[chosen[i].conversation].Conversation))
		}
	}
	return items, nil
}

// owner is a conversation in the scope of a request.
type owner struct {
	*continuo.Conversation
	last     int64 // seq that may be read
	revision int64 // that the store had before entries were read
	isKept   bool  // by Entries
}

// owners finds the conversations of places, as far as they are in the scope.
func (f Finder) owners(ctx context.Context, request *Request, places []place) (map[string]*owner, error) {
	var ids []string
	for _, at := range places {
		if len(ids) == 0 || ids[len(ids)-1] != at.conversation {
			ids = append(ids, at.conversation)
		}
	}
	found, err := f.Log.ConversationsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	scope := continuo.Scope{ProjectID: request.Conversation.ProjectID}
	if request.Scope == User {
		scope.UserID = request.Conversation.UserID
	}
	owners := make(map[string]*owner, len(found))
	for id, now := range found {
		one := &owner{now, now.LastSeq, now.Revision, now.ArchivedAt.IsZero() && isCounted(now)}
		isOthers := request.ForUser && now.UserID != "" && now.UserID != request.Conversation.UserID
		switch {
		case id == request.Conversation.ID:
			one.Conversation, one.last = &request.Conversation, min(request.Conversation.LastSeq, request.To)
		case !scope.Has(*now) || isOthers || now.Kind != continuo.KindUser || !now.ArchivedAt.IsZero():
			continue
		}
		owners[id] = one
	}
	return owners, nil
}
