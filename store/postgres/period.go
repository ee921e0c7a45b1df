package postgres

import (
	"math"
	"math/bits"
	"net/url"
	"strconv"

	"github.com/continuo-log/continuo/fulltext/index"
)

// The index of terms has no order. So that the newest documents with a term are found without reading all that have it, each
// document has terms for the periods of its project that it was added in: of 2.4 hours and of 3.3 days.

// periodShifts are the lengths of periods: 1 << shift nanoseconds. More or shorter ones would make the index larger by more than some percent.
func periodShifts() []int { return []int{43, 48} }

// maxPeriods is how many periods a query names.
const maxPeriods = 32

// periodTerm is the term of a period. It has no space, which separates terms.
func periodTerm(project string, level int, number int64) string {
	return ":" + strconv.Itoa(level) + strconv.FormatInt(number, 36) + ":" + url.QueryEscape(project)
}

// periodsOf are the terms of a document for the periods that it was added in.
func periodsOf(project string, added int64) (terms []string) {
	for level, shift := range periodShifts() {
		terms = append(terms, periodTerm(project, level, added>>shift))
	}
	return terms
}

// periodsBetween matches the documents of a project from the periods from one time to another, as a tsquery; since is when the first
// of these periods begins. Of too long a time it is "".
func periodsBetween(project string, from, to int64) (query string, since int64) {
	for level, shift := range periodShifts() {
		first, last := from>>shift, to>>shift
		if last-first >= maxPeriods {
			continue
		}
		var periods []index.Term
		for n := first; n <= last; n++ {
			periods = append(periods, index.Term{Text: periodTerm(project, level, n)})
		}
		return anyOf(periods), first << shift
	}
	return "", 0
}

// pace is how many documents were added to a scope in a time.
type pace struct {
	project        string
	newest, oldest int64
	documents      int64
}

// spareDocuments is how many times as many documents are looked through as should have enough hits.
const spareDocuments = 1.5

// documentsWith estimates how many documents have the wanted number of hits, when so many of a sample have one.
func documentsWith(wanted, hits int, sample int64) int64 {
	return int64(spareDocuments * float64(wanted) * float64(sample) / (float64(hits) + .5))
}

// periodsOf matches so many documents that were added before a time, or more; it is "" if these are too many.
func (p pace) periodsOf(documents, before int64) (query string, since int64) {
	high, low := bits.Mul64(uint64(max(p.newest-p.oldest, 1)), uint64(documents))
	if high >= uint64(p.documents) {
		return "", 0
	}
	span, _ := bits.Div64(high, low, uint64(p.documents))
	if span > math.MaxInt64 || before < math.MinInt64+int64(span) {
		return "", 0
	}
	return periodsBetween(p.project, before-int64(span), before)
}
