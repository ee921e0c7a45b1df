package lookup

import (
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// CommonTerms remembers how many entries of a conversation have a term at least, of terms that many have: messages such as
// "go on" are sent again and again. An entry that is redacted makes the conversation's counts unknown. It is safe for
// concurrent use.
type CommonTerms struct {
	mu     sync.Mutex
	counts map[commonKey]map[string]int
}

// commonKey is a conversation in which the same entries are redacted.
type commonKey struct {
	conversation string
	revision     int64
}

const (
	maxCommonConversations = 1_000
	maxCommonTerms         = 100 // of a conversation
)

// isCounted reports whether the counts of a conversation are remembered: entries of one that a fork was made of are redacted
// there.
func isCounted(conversation *continuo.Conversation) bool { return len(conversation.Lineage) == 0 }

// known returns the counts of all terms; nil if one is not known.
func (c *CommonTerms) known(request *Request, terms []index.Term) []int {
	if c == nil || !isCounted(&request.Conversation) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.counts[keyOf(request)]
	counts := make([]int, len(terms))
	for i, term := range terms {
		if counts[i] = found[term.Text]; counts[i] == 0 {
			return nil
		}
	}
	return counts
}

// note remembers the terms of which as many entries were found as were looked for.
func (c *CommonTerms) note(request *Request, terms []index.Term, lists [][]index.Hit, limit int) {
	if c == nil || !isCounted(&request.Conversation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(request)
	for i, term := range terms {
		if len(lists[i]) < limit || len(c.counts[key]) >= maxCommonTerms {
			continue
		}
		if c.counts == nil || len(c.counts) >= maxCommonConversations && c.counts[key] == nil {
			c.counts = map[commonKey]map[string]int{}
		}
		if c.counts[key] == nil {
			c.counts[key] = map[string]int{}
		}
		c.counts[key][term.Text] = len(lists[i])
	}
}

func keyOf(request *Request) commonKey {
	return commonKey{request.Conversation.ID, request.Conversation.Revision}
}
