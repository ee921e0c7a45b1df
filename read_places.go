package continuo

import (
	"context"
	"errors"
	"fmt"
)

// Place is an entry of a conversation as its readers see it: a fork has what it inherited.
type Place struct {
	Conversation *Conversation
	Seq          int64
}

// maxPlaces bounds how many entries one query for single ones asks for.
const maxPlaces = 512

// EntriesAt reads single entries, of any conversations, with few queries of the store: the result has one for each place,
// in their order, nil where there is none, which may have been deleted or archived since the place was found. Other
// readers may have the same entries: the caller must not change them.
func (l *Log) EntriesAt(ctx context.Context, places []Place) ([]*Entry, error) {
	found := make([]*Entry, 0, len(places))
	memory, held := memoryOf(ctx), int64(0)
	defer func() { memory.give(held) }()
	for len(found) < len(places) {
		rest := places[len(found):]
		page, taken, err := l.entriesAt(ctx, rest[:min(len(rest), maxPlaces)])
		held += taken
		if err != nil {
			return nil, fmt.Errorf("read entries: %w", err)
		}
		for i := range page {
			entry, conversation := &page[i], rest[i].Conversation
			switch {
			case entry.Seq == 0:
				entry = nil
			case entry.isForAnother(conversation):
				entry = l.redactedFor(conversation, entry)
			}
			found = append(found, entry)
		}
	}
	return found, nil
}

// entriesAt reads the entries of the first places: as many as pageBytes allows, or one larger entry. Taken is how many bytes
// of the context's memory budget it reserved.
func (l *Log) entriesAt(ctx context.Context, places []Place) (page []Entry, taken int64, err error) {
	own := make([]EntryPlace, len(places))
	for i, place := range places {
		own[i] = EntryPlace{segmentOf(place.Conversation, place.Seq).id, place.Seq}
		if place.Seq > place.Conversation.LastSeq { // appended after the conversation was read
			own[i].Seq = 0
		}
	}
	if page, err = l.store.EntriesAt(ctx, own, pageBytes); err != nil {
		return nil, 0, err
	}
	if len(page) > 0 {
		taken, err = memoryOf(ctx).takeEntries(page)
		return page, taken, err
	}
	page, taken, err = l.entries(ctx, own[0].ConversationID, EntryQuery{From: own[0].Seq, To: own[0].Seq, Limit: 1})
	if isGone := errors.Is(err, ErrNotFound) || errors.Is(err, ErrArchived); isGone || err == nil && len(page) == 0 {
		return make([]Entry, 1), 0, nil // it was removed meanwhile
	}
	return page, taken, err
}
