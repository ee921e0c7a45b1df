package lookup

import (
	"context"
	"slices"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pressure"
)

// termHits are the entries that have a term, the newest first: seqs of the searched conversation, and hits in others.
type termHits struct {
	own    []int64
	others []index.Hit
}

func (t *termHits) len() int { return len(t.own) + len(t.others) }

// found is what a look-up of terms found.
type found struct {
	terms     []termHits
	unindexed []continuo.Range // of the searched conversation
}

// TermLists remembers which entries of a conversation have the terms that were looked up, so that the next look-up asks
// only for newer ones: most words of a message occur in earlier ones too. An entry that is redacted makes the lists of its
// conversation unknown. It holds some 32 MB at most, or 1/32 of the process's memory limit (GOMEMLIMIT), and forgets
// everything when it has more, or when the process is near its limit. It is safe for concurrent use; the zero value is ready.
type TermLists struct {
	mu    sync.Mutex
	owned map[string]*conversationLists
	bytes int64
	cycle uint64 // of the pressure that it last looked at
}

// conversationLists are the lists of a conversation at a revision.
type conversationLists struct {
	revision int64
	terms    map[index.Term]*termList
}

// termList has the newest entries with a term, at most maxHits, of those up to a seq. It is not changed.
type termList struct {
	through int64
	seqs    []int64
}

const (
	listsBytes = 32 << 20
	listsShare = 32
	listBytes  = 150 // of a list beside its seqs
)

// get returns the lists of terms, nil for those that are not known.
func (l *TermLists) get(conversation *continuo.Conversation, terms []index.Term) []*termList {
	lists := make([]*termList, len(terms))
	l.mu.Lock()
	defer l.mu.Unlock()
	if owned := l.owned[conversation.ID]; owned != nil && owned.revision == conversation.Revision {
		for i, term := range terms {
			lists[i] = owned.terms[term]
		}
	}
	return lists
}

// put keeps lists.
func (l *TermLists) put(conversation *continuo.Conversation, terms []index.Term, lists []*termList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := pressure.Read()
	if isNew := now.Cycle != l.cycle; l.owned == nil || l.bytes > pressure.Bound(listsBytes, listsShare) || isNew && now.IsHigh() {
		l.owned, l.bytes = map[string]*conversationLists{}, 0
	}
	l.cycle = now.Cycle
	owned := l.owned[conversation.ID]
	if owned == nil || owned.revision < conversation.Revision {
		owned = &conversationLists{conversation.Revision, map[index.Term]*termList{}}
		l.owned[conversation.ID] = owned
	}
	if owned.revision > conversation.Revision {
		return
	}
	for i, term := range terms {
		if before := owned.terms[term]; before == nil || before.through < lists[i].through {
			l.bytes += listBytes + 8*int64(cap(lists[i].seqs))
			if before != nil {
				l.bytes -= listBytes + 8*int64(cap(before.seqs))
			}
			owned.terms[term] = lists[i]
		}
	}
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
	lists := f.Lists.get(conversation, terms)
	result := found{terms: make([]termHits, len(terms))}
	isFirst := true
	for _, isKnown := range []bool{true, false} {
		var asked []index.Term
		var numbers []int
		from := int64(1)
		for i, list := range lists {
			if (list != nil) != isKnown {
				continue
			}
			if isKnown && (len(numbers) == 0 || list.through+1 < from) {
				from = list.through + 1
			}
			asked, numbers = append(asked, terms[i]), append(numbers, i)
		}
		if len(asked) == 0 {
			continue
		}
		any, err := searcher.Any(ctx, *conversation, asked, from, request.To, maxHits)
		if err != nil {
			return result, err
		}
		if isFirst { // the second look-up may find more indexed
			result.unindexed = any.Unindexed
		}
		isFirst = false
		through := request.To
		for _, r := range any.Unindexed {
			through = min(through, r.From-1)
		}
		made := make([]*termList, len(asked))
		for k, i := range numbers {
			made[k] = lists[i].with(seqsOf(any.Lists[k]), through)
			result.terms[i].own = made[k].seqs
		}
		f.Lists.put(conversation, asked, made)
	}
	return result, nil
}

// with returns the list with newer entries, up to a seq. A nil list has none.
func (t *termList) with(newer []int64, through int64) *termList {
	if t == nil {
		return &termList{through, newer}
	}
	n := 0
	for n < len(newer) && newer[n] > t.through {
		n++
	}
	if through = max(through, t.through); n == 0 {
		return &termList{through, t.seqs}
	}
	seqs := slices.Concat(newer[:n], t.seqs)
	return &termList{through, seqs[:min(len(seqs), maxHits)]}
}

func seqsOf(hits []index.Hit) []int64 {
	seqs := make([]int64, len(hits))
	for i := range hits {
		seqs[i] = hits[i].Seq
	}
	return seqs
}
