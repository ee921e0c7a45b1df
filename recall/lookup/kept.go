package lookup

import (
	"context"
	"slices"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pressure"
)

// Entries keeps candidates decoded: the same entries are ranked for one message after another. What it has of a conversation
// is used only at the revision, as the store has it now, at which it was read. It holds some 32 MB at most, or 1/32 of the
// process's memory limit (GOMEMLIMIT), and forgets everything when it has more, or when the process is near its limit. It is
// safe for concurrent use; the zero value is ready.
type Entries struct {
	mu    sync.Mutex
	owned map[string]*keptEntries
	bytes int64
	cycle uint64 // of the pressure that it last looked at
}

// keptEntries are entries of a conversation at a revision; nil for one that cannot be recalled.
type keptEntries struct {
	revision int64
	entries  map[int64]*continuo.Entry
}

const (
	keptBytes  = 32 << 20
	keptShare  = 32
	entryBytes = 600 // of an entry beside its text
)

// get adds what is kept of places at a revision to a map, and returns the other places.
func (e *Entries) get(conversation string, revision int64, places []place, into map[int64]*continuo.Entry) (missing []place) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.owned[conversation]
	if kept == nil || kept.revision != revision {
		return places
	}
	for _, at := range places {
		if entry, ok := kept.entries[at.seq]; ok {
			into[at.seq] = entry
		} else {
			missing = append(missing, at)
		}
	}
	return missing
}

// put keeps entries that were read after the conversation had a revision.
func (e *Entries) put(conversation string, revision int64, read []place, entries map[int64]*continuo.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := pressure.Read()
	if isNew := now.Cycle != e.cycle; e.owned == nil || e.bytes > pressure.Bound(keptBytes, keptShare) || isNew && now.IsHigh() {
		e.owned, e.bytes = map[string]*keptEntries{}, 0
	}
	e.cycle = now.Cycle
	kept := e.owned[conversation]
	if kept == nil || kept.revision < revision {
		kept = &keptEntries{revision, map[int64]*continuo.Entry{}}
		e.owned[conversation] = kept
	}
	if kept.revision > revision {
		return
	}
	for _, at := range read {
		if _, known := kept.entries[at.seq]; known {
			continue
		}
		entry := entries[at.seq]
		if kept.entries[at.seq] = entry; entry != nil {
			e.bytes += int64(len(entry.Content.String()))
		}
		e.bytes += entryBytes
	}
}

// readKept reads places as readOwner does, those that are kept from memory.
func (f Finder) readKept(ctx context.Context, owner continuo.Conversation, places []place, request Request, items []Item) ([]Item, error) {
	now, err := f.Log.Conversation(ctx, owner.ID)
	if err != nil || !now.ArchivedAt.IsZero() {
		return f.readOwner(ctx, owner, places, request, items)
	}
	last := owner.LastSeq
	if owner.ID == request.Conversation.ID {
		last = min(last, request.To)
	}
	for len(places) > 0 && places[0].seq < 1 {
		places = places[1:]
	}
	for len(places) > 0 && places[len(places)-1].seq > last {
		places = places[:len(places)-1]
	}
	entries := make(map[int64]*continuo.Entry, len(places))
	missing := f.Entries.get(owner.ID, now.Revision, places, entries)
	if len(missing) > 0 {
		read, err := f.readOwner(ctx, owner, missing, request, nil)
		if err != nil {
			return nil, err
		}
		for i := range read {
			copied := *read[i].Entry // not the page that it was read with
			entries[copied.Seq] = &copied
		}
		if owner.ID != request.Conversation.ID { // what is missing there may have failed
			missing = slices.DeleteFunc(slices.Clone(missing), func(at place) bool { return entries[at.seq] == nil })
		}
		f.Entries.put(owner.ID, now.Revision, missing, entries)
	}
	items = slices.Grow(items, len(places))
	for _, at := range places {
		if entry := entries[at.seq]; entry != nil {
			items = append(items, itemOf(entry, &owner))
		}
	}
	return items, nil
}
