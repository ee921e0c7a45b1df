package lookup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pressure"
)

// termHits are the entries that have a term.
type termHits struct {
	own    []int64     // seqs of the searched conversation, the oldest first
	others []index.Hit // in other conversations, the newest first
}

func (t *termHits) len() int { return len(t.own) + len(t.others) }

// found is what a look-up of terms found.
type found struct {
	terms     []termHits
	unindexed []continuo.Range // of the searched conversation
}

// TermLists remembers which entries of a conversation have the terms that were looked up: most words of a message occur in
// earlier ones too. Entries that were added since are added to all lists of the conversation. An entry that is redacted makes the lists of its
// conversation unknown. It holds some 32 MB at most, or 1/32 of the process's memory limit (GOMEMLIMIT), and forgets
// everything when it has more, or when the process is near its limit. It is safe for concurrent use; the zero value is ready.
type TermLists struct {
	mu    sync.Mutex
	owned map[string]*conversationLists
	bytes int64
	cycle uint64 // of the pressure that it last looked at
}

// conversationLists are the lists of a conversation at a revision, of its entries up to a seq.
type conversationLists struct {
	revision, through int64
	terms             map[index.Term]*termList
	texts             map[string][]*termList // by the terms of documents
	prefixes          []*termList
}

// termList has the newest entries with a term, at most maxHits, the oldest first. Seqs are added at the end; others are not changed.
type termList struct {
	term index.Term
	seqs []int64
}

const (
	listsBytes = 32 << 20
	listsShare = 32
	listBytes  = 400 // of a list beside its seqs
	// maxNewer is how many entries are added to lists. Where there are more, the terms are looked up again.
	maxNewer = 256
)

// of returns the lists of a conversation at a revision that go nearly up to a seq; nil for none.
func (l *TermLists) of(conversation *continuo.Conversation, through int64) *conversationLists {
	owned := l.owned[conversation.ID]
	if owned == nil || owned.revision != conversation.Revision || owned.through < through-maxNewer {
		return nil
	}
	return owned
}

// get returns the lists of terms, nil for those that are not known, and up to which seq they go: through where there are none.
func (l *TermLists) get(conversation *continuo.Conversation, terms []index.Term, through int64) (lists [][]int64, known int64) {
	lists = make([][]int64, len(terms))
	l.mu.Lock()
	defer l.mu.Unlock()
	owned := l.of(conversation, through)
	if owned == nil {
		return lists, through
	}
	for i, term := range terms {
		if list := owned.terms[term]; list != nil {
			lists[i] = list.seqs
		}
	}
	return lists, owned.through
}

// add adds documents to all lists of a conversation that go up to a seq, which then go up to another.
func (l *TermLists) add(conversation *continuo.Conversation, from, through int64, documents []index.Document) {
	l.mu.Lock()
	defer l.mu.Unlock()
	owned := l.of(conversation, from)
	if owned == nil || owned.through != from {
		return
	}
	owned.through = through
	for _, d := range documents {
		for _, text := range d.Terms {
			for _, list := range owned.texts[text] {
				l.bytes += list.add(d.Seq)
			}
			for _, list := range owned.prefixes {
				if strings.HasPrefix(text, list.term.Text) {
					l.bytes += list.add(d.Seq)
				}
			}
		}
	}
}

// put keeps lists of terms up to a seq.
func (l *TermLists) put(conversation *continuo.Conversation, terms []index.Term, lists [][]int64, through int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := pressure.Read()
	if isNew := now.Cycle != l.cycle; l.owned == nil || l.bytes > pressure.Bound(listsBytes, listsShare) || isNew && now.IsHigh() {
		l.owned, l.bytes = map[string]*conversationLists{}, 0
	}
	l.cycle = now.Cycle
	owned := l.of(conversation, through)
	if owned == nil {
		if other := l.owned[conversation.ID]; other != nil && other.revision > conversation.Revision {
			return
		}
		owned = &conversationLists{conversation.Revision, through, map[index.Term]*termList{}, map[string][]*termList{}, nil}
		l.owned[conversation.ID] = owned
	}
	if owned.through != through {
		return
	}
	for i, term := range terms {
		if owned.terms[term] != nil {
			continue
		}
		list := &termList{term, lists[i]}
		owned.terms[term] = list
		l.bytes += listBytes + 8*int64(cap(lists[i]))
		if term.Prefix {
			owned.prefixes = append(owned.prefixes, list)
			continue
		}
		owned.texts[term.Text] = append(owned.texts[term.Text], list)
		if term.Or != "" && term.Or != term.Text {
			owned.texts[term.Or] = append(owned.texts[term.Or], list)
		}
	}
}

// add adds an entry, and returns by how many bytes the list has grown.
func (t *termList) add(seq int64) int64 {
	if n := len(t.seqs); n > 0 && t.seqs[n-1] >= seq {
		return 0
	}
	before := cap(t.seqs)
	t.seqs = newest(append(t.seqs, seq))
	return 8 * int64(cap(t.seqs)-before)
}

// newest are the newest maxHits of seqs.
func newest(seqs []int64) []int64 { return seqs[max(0, len(seqs)-maxHits):] }

// has reports whether a document has a term.
func has(d *index.Document, term index.Term) bool {
	return slices.ContainsFunc(d.Terms, func(text string) bool {
		return text == term.Text || text == term.Or || term.Prefix && strings.HasPrefix(text, term.Text)
	})
}

// own looks terms up in the searched conversation.
func (f Finder) own(ctx context.Context, request *Request, terms []index.Term) (found, error) {
	searcher := index.Searcher{Log: f.Log, Store: f.Store}
	conversation := &request.Conversation
	if f.Lists == nil || f.Store == nil || !isCounted(conversation) || request.To != conversation.LastSeq {
		any, err := searcher.Any(ctx, *conversation, terms, 1, request.To, maxHits)
		result := found{terms: make([]termHits, len(terms)), unindexed: any.Unindexed}
		for i, list := range any.Lists {
			result.terms[i].own = seqsOf(list)
		}
		return result, err
	}
	lists, known := f.Lists.get(conversation, terms, request.To)
	var missing []index.Term
	for i, list := range lists {
		if list == nil {
			missing = append(missing, terms[i])
		}
	}
	from := int64(1)
	if len(missing) == 0 {
		from = known + 1 // is it indexed?
	}
	any, err := searcher.Any(ctx, *conversation, missing, from, request.To, maxHits)
	if err != nil {
		return found{}, err
	}
	result := found{terms: make([]termHits, len(terms)), unindexed: any.Unindexed}
	through := request.To
	for _, r := range any.Unindexed {
		through = min(through, r.From-1)
	}
	var newer []index.Document
	if known < through {
		if newer, err = f.Store.Documents(ctx, conversation.ID, known+1, through); err != nil {
			return found{}, fmt.Errorf("recall: %w", err)
		}
		f.Lists.add(conversation, known, through, newer)
	}
	made := make([][]int64, 0, len(missing))
	for i, seqs := range lists {
		own := &result.terms[i]
		if seqs == nil {
			own.own = seqsOf(any.Lists[len(made)])
			made = append(made, own.own)
			continue
		}
		own.own = seqs[:len(seqs):len(seqs)]
		for k := range newer {
			if has(&newer[k], terms[i]) {
				own.own = append(own.own, newer[k].Seq)
			}
		}
		own.own = newest(own.own)
	}
	f.Lists.put(conversation, missing, made, through)
	return result, nil
}

// seqsOf are the seqs of hits, the oldest first.
func seqsOf(hits []index.Hit) []int64 {
	seqs := make([]int64, len(hits))
	for i := range hits {
		seqs[len(hits)-1-i] = hits[i].Seq
	}
	return seqs
}
