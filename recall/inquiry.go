package recall

import "slices"

// inquiry is a query, and where the documents have its stems.
type inquiry struct {
	*question
	text     string
	terms    []int32 // the stems of the query's subject, in its order; then the others that count
	subject  int     // how many of them are the subject's
	rarities []fixed // of the stems
	total    fixed   // the rarities of the subject
	hits     []hit   // by document
	// Weights of the stems: one for all of the query's words, and for capitalized ones; one half for stems that begin as one of the
	// subject does.
	all, names, related []fixed
}

// inquire reads a query, and finds its stems in the documents. The newest query is remembered.
func (c *Corpus) inquire(text string) *inquiry {
	if c.asked != nil && c.asked.text == text {
		return c.asked
	}
	q := &inquiry{question: c.analyze(text), text: text}
	list := c.vocabulary.list()
	defer c.vocabulary.free(list)
	for _, term := range q.question.terms {
		if term >= 0 {
			list.add(term)
		}
	}
	q.subject = len(list.terms)
	relatives := c.relatives(q.question)
	list.add(q.question.all...)
	list.add(q.question.names...)
	list.add(relatives...)
	weigh := func(terms []int32, weight fixed) []fixed {
		weights := make([]fixed, len(list.terms))
		for _, term := range terms {
			weights[list.at[term]-1] = weight
		}
		return weights
	}
	q.all, q.names, q.related = weigh(q.question.all, one), weigh(q.question.names, one), weigh(relatives, one/2)
	q.terms, q.rarities, q.hits = slices.Clone(list.terms), c.rarities(list), c.find(list, weigh(list.terms, one))
	for _, rarity := range q.rarities[:q.subject] {
		q.total += rarity
	}
	c.asked = q
	return q
}

// relatives are the stems of the vocabulary that begin as one of the query's subject does.
func (c *Corpus) relatives(q *question) (relatives []int32) {
	for k, stem := range q.stems {
		for _, term := range c.vocabulary.relatives(stem) {
			if term != q.terms[k] && int(term) < len(c.stems) {
				relatives = append(relatives, term)
			}
		}
	}
	return relatives
}
