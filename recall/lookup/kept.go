package lookup

import (
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

// get fills in what is kept of places, and returns the numbers of the others.
func (e *Entries) get(owners map[string]*owner, places []place, into []*continuo.Entry) (missing []int) {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	for i, at := range places {
		if owner := owners[at.conversation]; e != nil && owner.isKept {
			if kept := e.owned[at.conversation]; kept != nil && kept.revision == owner.revision {
				if entry, known := kept.entries[at.seq]; known {
					into[i] = entry
					continue
				}
			}
		}
		missing = append(missing, i)
	}
	return missing
}

// put keeps those of some entries that were read after their conversations had their revisions.
func (e *Entries) put(owners map[string]*owner, places []place, entries []*continuo.Entry, read []int) {
	if e == nil || len(read) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := pressure.Read()
	if isNew := now.Cycle != e.cycle; e.owned == nil || e.bytes > pressure.Bound(keptBytes, keptShare) || isNew && now.IsHigh() {
		e.owned, e.bytes = map[string]*keptEntries{}, 0
	}
	e.cycle = now.Cycle
	for _, i := range read {
		at := places[i]
		owner, kept := owners[at.conversation], e.owned[at.conversation]
		if !owner.isKept {
			continue
		}
		if kept == nil || kept.revision < owner.revision {
			kept = &keptEntries{owner.revision, map[int64]*continuo.Entry{}}
			e.owned[at.conversation] = kept
		}
		if _, known := kept.entries[at.seq]; known || kept.revision > owner.revision {
			continue
		}
		entry := entries[i]
		if kept.entries[at.seq] = entry; entry != nil {
			e.bytes += int64(len(entry.Content.String()))
		}
		e.bytes += entryBytes
	}
}
