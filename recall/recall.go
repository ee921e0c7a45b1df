// Package recall ranks the entries of conversations by how likely it is that an answer to a text needs them. It is a
// pure function of the query, the documents and the statistics of the index, in integers: every machine and every store
// gives the same order.
//
// The score of a document is a weighted sum of the features of feature.go: how well its own words match (BM25 over stems,
// the coverage of the query's terms, the rarest term), how well its neighbours, its stretch of the conversation and its
// session match, who speaks, dates and names, the form of the question, and whether it is a standing instruction. The
// weights in weights.go are fitted to annotated questions by internal/recallfit, which prints the table. The sum is the
// logarithm of the odds that the document is needed; documents are taken by their probability per token.
//
// Pitfalls. Documents are ordered by conversation and seq, without repetitions: neighbours are those that are next to
// each other in the list with seqs at most maxGap apart. Statistics describe everything that was searched, documents
// only the candidates. A weight belongs to its feature's exact definition: after a change of either, fit again and raise
// Version.
package recall

import (
	"cmp"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Version identifies the features and the weights. It is recorded with what a turn recalled.
const Version = "words-2"

// Document is one entry as the ranker reads it.
type Document struct {
	ConversationID string
	Seq            int64
	Role           continuo.Role
	Speaker        string    // the participant's name; "" for none
	At             time.Time // zero for unknown
	Text           string
	Tokens         int
	// Near is how near the document's vector is to the query's, in units of 1/65536; see package recall/vector. Default 0:
	// not near, or unknown.
	Near int64
}

// Near is the name of the part of a score that Document.Near adds, and nearWeight the weight of one standard deviation. It is
// not fitted: it lets an entry that stands out by its vector alone come before entries with one word in common, and after
// those with most of a question's words.
const (
	Near             = "near"
	nearWeight fixed = 3 * one / 2
)

// Statistics describe the collection that the documents were selected from. The zero value means that the documents are
// the collection.
type Statistics struct {
	Documents int64            // entries with words
	Counts    map[string]int64 // of the query's stems: how many entries have them
}

// Scored is a document with its score.
type Scored struct {
	Index int // of the document in the list
	// Odds is the logarithm of the odds that the document is needed, in units of 1/65536.
	Odds int64
	// Value is the probability per token, by which documents are chosen for a budget.
	Value uint64
}

// Probability is the probability that the document is needed, from 0 to 1 000 000.
func (s Scored) Probability() int { return int(probability(s.Odds) * 1_000_000 >> 30) }

// fixedCost is how many tokens an entry counts for beside its own, so that short ones do not come first for their size alone.
const fixedCost = 60

// ValueOf is Value for a part of the document that has so many tokens.
func (s Scored) ValueOf(tokens int) uint64 {
	return probability(s.Odds) << 24 / uint64(fixedCost+tokens)
}

// Rank orders documents, the one to take first at the beginning. Documents without any feature that speaks for them are
// ranked as well.
func Rank(query string, statistics Statistics, documents []Document) []Scored {
	return NewCorpus(statistics, documents).Rank(query)
}

// Rank ranks the documents of the corpus.
func (c *Corpus) Rank(query string) []Scored {
	ranked := make([]Scored, len(c.documents))
	c.Features(query, func(i int, row *Row) {
		ranked[i] = c.scored(i, row)
	})
	slices.SortFunc(ranked, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(b.Odds, a.Odds), cmp.Compare(a.Index, b.Index))
	})
	return ranked
}

func (c *Corpus) scored(i int, row *Row) Scored {
	table := &weights[0]
	if c.named {
		table = &weights[1]
	}
	sum := table[0] * one
	for k, value := range row {
		sum += table[k+1] * value
	}
	scored := Scored{Index: i, Odds: sum>>16 + mul(nearWeight, c.documents[i].Near)}
	scored.Value = scored.ValueOf(c.documents[i].Tokens)
	return scored
}
