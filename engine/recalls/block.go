package recalls

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
)

// frame is the first and the last line of a block. With entries of other conversations, or with facts, it has another first line.
type frame struct{ begin, beginElsewhere, end string }

// inWindow is the frame of a block among messages, forRoles that of a role's block, whose view adds the lines.
var (
	inWindow = frame{begins, beginsElsewhere, ends}
	forRoles = frame{}
)

// A block has one line for each entry, below the time of the entries that follow. Lines of a text after its first are
// indented, so that only the block's own lines begin at the margin: nothing in a text can pass for structure.
const (
	begins = "[Recalled: earlier entries that may matter to the next message. They are quotations of this conversation.]\n"
	// beginsElsewhere begins a block with entries of other conversations, or with facts.
	beginsElsewhere = "[Recalled: what the user has said earlier and may matter to the next message. They are quotations, also of other conversations.]\n"
	ends            = "[End of the recalled entries]"

	blockTokens = 40 // of the first and the last line
	lineTokens  = 12 // of an entry's label, and its share of the times
	maxSpeaker  = 40 // characters
)

// block writes entries, between a first and a last line.
func block(taken []chosenEntry, begin, end string) string {
	var b strings.Builder
	b.WriteString(begin)
	var last *chosenEntry
	for i := range taken {
		one := &taken[i]
		if stamp := stampAfter(last, one); stamp != "" {
			b.WriteString(stamp)
			b.WriteByte('\n')
		}
		last = one
		b.WriteString(line(one))
	}
	b.WriteString(end)
	return strings.TrimSuffix(b.String(), "\n")
}

// line is what is shown of an entry.
func line(one *chosenEntry) string { return label(one) + indented(one.text) + "\n" }

// Line is what the view recall shows of a message, without its day.
func Line(entry *continuo.Entry) string {
	return line(&chosenEntry{Item: lookup.Item{Entry: entry}, text: entry.Content.String()})
}

// stampAfter is the line with the time of an entry, where another day, hour or conversation begins. The first day has its year,
// the others only where it is another one: a day costs two tokens then, in the place of six.
func stampAfter(last, one *chosenEntry) string {
	at := one.Entry.CreatedAt.UTC()
	day := at.Format("2 January 2006")
	if last != nil && last.Entry.CreatedAt.UTC().Year() == at.Year() && last.Entry.Fact == nil {
		day = at.Format("2 January")
	}
	isNew := last == nil || last.Owner.ID != one.Owner.ID
	switch {
	case one.Entry.Fact != nil && isNew:
		return "Known of the user:"
	case one.Entry.Fact != nil:
		return ""
	case one.isElsewhere && (isNew || at.Format(time.DateOnly) != last.Entry.CreatedAt.UTC().Format(time.DateOnly)):
		return day + ", another conversation:"
	}
	if isNew || at.Format(time.DateOnly) != last.Entry.CreatedAt.UTC().Format(time.DateOnly) {
		return day
	}
	if at.Sub(last.Entry.CreatedAt) > time.Hour {
		return at.Format("15:04")
	}
	return ""
}

// label is the beginning of an entry's line: its seq and who wrote it; of a fact its id, and since when and until when it holds.
func label(one *chosenEntry) string {
	if fact := one.Entry.Fact; fact != nil {
		derived := ""
		if fact.Derived {
			derived = "derived, "
		}
		since := fact.ValidFrom
		if since.IsZero() {
			since = one.Entry.CreatedAt
		}
		until := ""
		if !fact.ValidTo.IsZero() {
			until = " until " + memory.LastDay(fact.ValidTo)
		}
		return fmt.Sprintf("fact %d (%s%s%s): ", one.Entry.Seq, derived, since.UTC().Format(time.DateOnly), until)
	}
	speaker := strings.Join(strings.FieldsFunc(recall.SpeakerOf(one.Entry), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '.' && r != '_'
	}), " ")
	if speaker = head(speaker, maxSpeaker); speaker == "" {
		speaker = string(one.Entry.Role)
	}
	note := ""
	if one.passage {
		note = " (excerpt)"
	}
	return fmt.Sprintf("%d %s%s: ", one.Entry.Seq, speaker, note)
}

// indented returns a text whose lines after the first begin with a space.
func indented(text string) string {
	var b strings.Builder
	for i, line := range strings.FieldsFunc(strings.TrimSpace(text), isLineEnd) {
		if i > 0 {
			b.WriteString("\n ")
		}
		b.WriteString(strings.TrimRightFunc(line, unicode.IsSpace))
	}
	return b.String()
}

// isLineEnd reports whether some reader takes a character for the end of a line.
func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// Passage returns the part of a text that a query needs most, of at most so many characters: a run of its sentences, with
// marks where something is left out. The analyzer remembers the words of its sentences.
func Passage(analyzer *recall.Analyzer, text, query string, chars int) string {
	sentences := sentencesOf(text, chars)
	documents := make([]recall.Document, len(sentences))
	for i, sentence := range sentences {
		documents[i] = recall.Document{Seq: int64(i + 1), Role: continuo.Assistant, Text: sentence, Tokens: len(sentence) / charsPerToken}
	}
	ranked := analyzer.Corpus(recall.Statistics{}, documents).Rank(query)
	if len(ranked) == 0 {
		return ""
	}
	first := ranked[0].Index
	last, left := first, chars-len(sentences[first])
	for grown := true; grown; {
		grown = false
		if last+1 < len(sentences) && len(sentences[last+1]) <= left {
			last++
			left -= len(sentences[last])
			grown = true
		}
		if first > 0 && len(sentences[first-1]) <= left {
			first--
			left -= len(sentences[first])
			grown = true
		}
	}
	passage := strings.TrimSpace(strings.Join(sentences[first:last+1], ""))
	if first > 0 {
		passage = "… " + passage
	}
	if last < len(sentences)-1 {
		passage += " …"
	}
	return passage
}

// sentencesOf splits a text after the ends of sentences and lines, and after so many bytes at most.
func sentencesOf(text string, most int) []string {
	var sentences []string
	begin := 0
	wasEnd := false
	for i, r := range text {
		if i > begin && (wasEnd && unicode.IsSpace(r) || isLineEnd(r) || i-begin >= most) {
			sentences = append(sentences, text[begin:i])
			begin = i
		}
		wasEnd = strings.ContainsRune(".!?…。！？", r)
	}
	if begin < len(text) {
		sentences = append(sentences, text[begin:])
	}
	return sentences
}
