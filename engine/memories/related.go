package memories

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
)

// The bounds of what is recalled in turns.
const (
	maxRelated    = 60  // facts of a memory that are ranked for one message
	maxHeldCached = 256 // memories whose facts stay in memory
	maxHeldFacts  = 50_000
)

// heldFacts are the facts of memories that hold, with the stems of their words, and the profiles, as they were at a state of
// each memory. It is safe for concurrent use.
type heldFacts struct {
	mu       sync.Mutex
	memories map[string]*heldMemory
	facts    int // of all of them
}

type heldMemory struct {
	lastSeq, revision int64
	until             time.Time // when the time of one of the facts is over; zero for never
	facts             []heldFact
	profile           *continuo.Entry // the newest; nil for none
	wanted            string          // the profile that the facts make
	wantedFacts       []int64         // of it
	isOver            bool            // the time of a fact of the newest profile is over
}

type heldFact struct {
	entry *continuo.Entry
	stems []string
}

// of returns what is held of a memory.
func (h *heldFacts) of(ctx context.Context, m *Memories, conversation continuo.Conversation) (*heldMemory, error) {
	h.mu.Lock()
	cached := h.memories[conversation.ID]
	h.mu.Unlock()
	now := m.log.Now()
	if cached != nil && cached.lastSeq == conversation.LastSeq && cached.revision == conversation.Revision && (cached.until.IsZero() || now.Before(cached.until)) {
		return cached, nil
	}
	entries, err := m.entries(ctx, conversation)
	if err != nil {
		return nil, err
	}
	made := &heldMemory{lastSeq: conversation.LastSeq, revision: conversation.Revision}
	known := memory.Fold(entries)
	for i := range known {
		k := &known[i]
		if !k.Holds(now) {
			continue
		}
		made.facts = append(made.facts, held(k, conversation))
		if end := k.ValidTo; !end.IsZero() && (made.until.IsZero() || end.Before(made.until)) {
			made.until = end
		}
	}
	made.setProfile(entries, known, m.counter(), now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.memories[conversation.ID]; before != nil {
		h.facts -= len(before.facts)
	}
	if h.memories == nil || len(h.memories) >= maxHeldCached || h.facts+len(made.facts) > maxHeldFacts {
		h.memories, h.facts = map[string]*heldMemory{}, 0
	}
	h.memories[conversation.ID] = made
	h.facts += len(made.facts)
	return made, nil
}

// held is a fact as an entry that was said when it was stated.
func held(k *memory.Known, conversation continuo.Conversation) heldFact {
	entry := &continuo.Entry{
		ConversationID: conversation.ID, Seq: k.Seq, Role: continuo.User, CreatedAt: k.At, Content: continuo.Text(k.Text), Fact: &k.Fact,
	}
	if !k.ValidFrom.IsZero() {
		entry.CreatedAt = k.ValidFrom
	}
	fact := heldFact{entry: entry}
	for _, term := range recall.Terms(k.Text) {
		fact.stems = append(fact.stems, term.Stem)
	}
	return fact
}

// Related returns the facts that hold and have a word of a text, of a conversation's user and of its project, those with the
// most words first, as what a turn may recall. It returns none where memory is not enabled.
func (m *Memories) Related(ctx context.Context, conversation continuo.Conversation, text string) ([]lookup.Item, error) {
	if !m.options.Enabled || conversation.Kind != continuo.KindUser {
		return nil, nil
	}
	var stems []string
	for _, term := range recall.Terms(text) {
		stems = append(stems, term.Stem)
	}
	if len(stems) == 0 {
		return nil, nil
	}
	var items []lookup.Item
	for _, key := range []string{continuo.MemoryKey(conversation.UserID), continuo.ProjectMemoryKey} {
		found, err := m.log.Memory(ctx, conversation.ProjectID, key)
		if errors.Is(err, continuo.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		held, err := m.held.of(ctx, m, found)
		if err != nil {
			return nil, err
		}
		items = append(items, related(found, held.facts, stems)...)
	}
	return items, nil
}

// related selects the facts with the most of some stems, in their order.
func related(conversation continuo.Conversation, facts []heldFact, stems []string) (items []lookup.Item) {
	type match struct{ at, shared int }
	var matches []match
	for i := range facts {
		shared := 0
		for _, stem := range facts[i].stems {
			if slices.Contains(stems, stem) {
				shared++
			}
		}
		if shared > 0 {
			matches = append(matches, match{i, shared})
		}
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Or(cmp.Compare(b.shared, a.shared), cmp.Compare(b.at, a.at)) })
	matches = matches[:min(len(matches), maxRelated)]
	slices.SortFunc(matches, func(a, b match) int { return cmp.Compare(a.at, b.at) })
	for _, one := range matches {
		entry := facts[one.at].entry
		items = append(items, lookup.Item{Entry: entry, Owner: &conversation, Tokens: recall.TokensOf(entry)})
	}
	return items
}
