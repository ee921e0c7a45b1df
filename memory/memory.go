// Package memory decides what is known of a user: it finds facts in what people say, and folds the facts of a memory
// conversation into what holds now. A fact is an entry ([continuo.Fact]); the log refuses one whose quote does not stand
// in its source, and redacts it when the source is removed. This package does no I/O and has no clock.
//
// Nothing that is read here is an instruction to this program: a text is data, whatever it asks for. The text of a fact
// that the rules find is its quote.
package memory

import (
	"cmp"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
)

// The names of who extracts or states a fact; any other name is a model's or a tool's.
const (
	ByRules  = "rules"
	ByPerson = "person"
	ByCounts = "counts"
)

// UserSubject is the subject of what a person says of itself where the entry does not name the person.
const UserSubject = "user"

// Known is a fact of a memory together with what the other facts say about it.
type Known struct {
	Seq  int64     // of its entry in the memory conversation
	Text string    //
	At   time.Time // when it was recorded
	continuo.Fact
	// SupersededBy is the seq of the fact that replaces it; 0 while it holds.
	SupersededBy int64
	// Contradicts are seqs of facts that cannot hold together with it and that no time orders.
	Contradicts []int64

	ends bool // it was stated with an end
}

// Holds reports whether nothing has replaced the fact, and its time has not ended at some time.
func (k *Known) Holds(at time.Time) bool {
	return k.SupersededBy == 0 && (k.ValidTo.IsZero() || at.Before(k.ValidTo))
}

// Said is when the fact was stated.
func (k *Known) Said() time.Time {
	if !k.ValidFrom.IsZero() {
		return k.ValidFrom
	}
	return k.At
}

// Fold returns the facts of a memory conversation's entries in their order. A redacted fact has no effect any more: a
// fact that only it had replaced holds again.
func Fold(entries []continuo.Entry) []Known {
	var known []Known
	for i := range entries {
		e := &entries[i]
		if e.Fact == nil || e.Redacted != nil {
			continue
		}
		known = append(known, Known{Seq: e.Seq, Text: e.Content.String(), At: e.CreatedAt, Fact: *e.Fact, ends: !e.Fact.ValidTo.IsZero()})
	}
	supersede(known)
	findContradictions(known)
	return known
}

// supersede sets SupersededBy and ValidTo: by what facts name, and by their attributes.
func supersede(known []Known) {
	bySeq := map[int64]int{}
	for i := range known {
		bySeq[known[i].Seq] = i
	}
	for i := range known {
		for _, seq := range known[i].Supersedes {
			if old, ok := bySeq[seq]; ok && old != i {
				known[old].replace(&known[i])
			}
		}
	}
	groups := map[[2]string][]int{}
	for i := range known {
		if k := &known[i]; k.Attribute != "" {
			name := [2]string{strings.ToLower(k.Subject), k.Attribute}
			groups[name] = append(groups[name], i)
		}
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(a, b int) int { return known[a].Said().Compare(known[b].Said()) })
		for at, older := range group {
			known[older].settle(known, group[at+1:])
		}
	}
}

// settle compares a fact with those of its attribute that were stated at the same time or later: the first later one replaces
// it, or one that says the same; others contradict it. One with an end leaves one without an end as it is.
func (k *Known) settle(known []Known, others []int) {
	for _, at := range others {
		other := &known[at]
		if k.ends != other.ends && !sameWords(k.Text, other.Text) && (other.ends || k.Said().Equal(other.Said())) {
			continue
		}
		if k.Said().Before(other.Said()) || sameWords(k.Text, other.Text) {
			k.replace(other)
			return
		}
		if k.SupersededBy != other.Seq && other.SupersededBy != k.Seq {
			contradict(k, other)
		}
	}
}

// replace ends a fact, unless an earlier one has ended it. What had ended before keeps its end.
func (k *Known) replace(newer *Known) {
	if k.SupersededBy != 0 {
		return
	}
	k.SupersededBy = newer.Seq
	if k.ValidTo.IsZero() || newer.Said().Before(k.ValidTo) {
		k.ValidTo = newer.Said()
	}
}

func contradict(a, b *Known) {
	if !slices.Contains(a.Contradicts, b.Seq) {
		a.Contradicts, b.Contradicts = append(a.Contradicts, b.Seq), append(b.Contradicts, a.Seq)
	}
}

// findContradictions pairs what was said never to have happened with what was said to have happened.
func findContradictions(known []Known) {
	type words struct {
		at      int
		content []string
	}
	var denied []words
	affirmed := map[string][]words{} // by each content word
	for i := range known {
		k := &known[i]
		if k.Derived || k.Kind == continuo.FactInstruction || k.Kind == continuo.FactPreference {
			continue
		}
		found := words{i, contentWords(k.Text)}
		if isDenial(k.Text) {
			denied = append(denied, found)
			continue
		}
		for _, word := range found.content {
			affirmed[word] = append(affirmed[word], found)
		}
	}
	for _, denial := range denied {
		shared := map[int]int{}
		for _, word := range denial.content {
			for _, other := range affirmed[word] {
				shared[other.at]++
			}
		}
		for at, count := range shared {
			// Most of what is denied must be affirmed, not only its topic.
			if count >= 3 && 5*count >= 3*len(denial.content) && strings.EqualFold(known[at].Subject, known[denial.at].Subject) && known[at].ends == known[denial.at].ends {
				contradict(&known[at], &known[denial.at])
			}
		}
	}
	for i := range known {
		slices.Sort(known[i].Contradicts)
	}
}

// Same returns the fact that holds at some time and says the same as a text of a subject; nil for none.
func Same(known []Known, subject, text string, at time.Time) *Known {
	for i := range known {
		if k := &known[i]; k.Holds(at) && strings.EqualFold(k.Subject, subject) && sameWords(k.Text, text) {
			return k
		}
	}
	return nil
}

// Key is equal for statements about a subject that differ in nothing but case, spaces and punctuation.
func Key(subject, text string) string {
	return strings.ToLower(cmp.Or(subject, UserSubject)) + "\n" + strings.Join(wordsOf(text), " ")
}

// Find returns the fact with a seq; nil for none.
func Find(known []Known, seq int64) *Known {
	at := slices.IndexFunc(known, func(k Known) bool { return k.Seq == seq })
	if at < 0 {
		return nil
	}
	return &known[at]
}

// SortNewest sorts facts by when they were stated, the newest first.
func SortNewest(known []Known) {
	slices.SortStableFunc(known, func(a, b Known) int {
		return cmp.Or(b.Said().Compare(a.Said()), cmp.Compare(b.Seq, a.Seq))
	})
}

// updateCue marks a statement that says how something is now, in place of how it was.
var updateCue = lazy.Regexp(`(?i)\b(now|currently|increased|decreased|raised|reduced|extended|updated|changed|new|instead|no longer|switched|moved|reached|improved|up to|down to|bumped|adjusted|rescheduled|postponed|latest)\b`)

// Updated returns the seqs of the facts that a newer statement replaces because it says the same with other figures: at
// least three words of the topic are the same, and most of those of the older one. A statement with an end replaces none.
func Updated(known []Known, candidate Candidate, at time.Time) (seqs []int64) {
	if !candidate.ValidTo.IsZero() || len(figures(candidate.Text)) == 0 || !updateCue().MatchString(candidate.Text) {
		return nil
	}
	content := contentWords(candidate.Text)
	for i := range known {
		k := &known[i]
		if !k.Holds(at) || k.Derived || !strings.EqualFold(k.Subject, candidate.Subject) || !k.Said().Before(at) {
			continue
		}
		older := figures(k.Text)
		if len(older) == 0 || slices.Equal(older, figures(candidate.Text)) {
			continue
		}
		words := contentWords(k.Text)
		shared := 0
		for _, word := range words {
			if slices.Contains(content, word) {
				shared++
			}
		}
		if shared >= 3 && 2*shared >= len(words) {
			seqs = append(seqs, k.Seq)
		}
	}
	return seqs
}
