package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/window"
)

const (
	// maxSummarized is how many characters of entries are read for one summary. An entry counts for minSummarized
	// at least, so that their number is bounded too, and for no more than is used of it: one flood of words does not
	// take the place of all that was said before.
	maxSummarized = 200_000
	minSummarized = 40
	// maxFirstRows bounds how many entries are looked at for the first request.
	maxFirstRows = 64
)

// summaryInput is what a summary is made of.
type summaryInput struct {
	role          string
	begin         int64            // what is read at most begins here
	from, through int64            // what it stands for
	before        *continuo.Entry  // the summary or the notes that are taken along; nil for none
	first         *continuo.Entry  // the first thing that the user said; nil for none
	entries       []continuo.Entry // what was said since, oldest first
	skipped       int64            // how many entries before them were never read
	covered       bool             // there is a summary as new as this one would be
}

// readSummaryInput reads what the entries from and through say that the newest summary before does not. Where they are too many
// the oldest are left out, and the summary says how many.
// Known is the seq of a summary that is taken along however far back it stands; 0 for none.
func (e *Engine) readSummaryInput(ctx context.Context, conversation continuo.Conversation, from, through int64, role string, known int64) (*summaryInput, error) {
	h := &summaryInput{role: role, begin: from, from: from, through: through}
	if err := h.addPrevious(ctx, e.Log, conversation, known); err != nil {
		return nil, err
	}
	left, oldest := maxSummarized, through+1
	for entry, err := range e.Log.Read(ctx, conversation, continuo.Range{From: from, Backward: true}) {
		if err != nil {
			return nil, fmt.Errorf("summarize: %w", err)
		}
		if h.before != nil && entry.Seq <= h.before.Summary.Through {
			break
		}
		h.add(&entry)
		if entry.Seq > through {
			continue
		}
		if left -= min(max(entry.Chars, minSummarized), maxUserChars); left < 0 && oldest <= through {
			break
		}
		if oldest = entry.Seq; tells(&entry) {
			if entry.Chars > maxUserChars { // the rest need not stay in memory
				entry.Content = continuo.Text(strings.Clone(headOf(entry.Content, maxUserChars)))
			}
			h.entries = append(h.entries, entry)
		}
	}
	slices.Reverse(h.entries)
	if h.skipped = oldest - from; h.before != nil {
		h.from, h.skipped = h.before.Summary.From, oldest-h.before.Summary.Through-1+skippedBefore(h.before)
	}
	return h, h.findFirst(ctx, e.Log, conversation, from)
}

// skippedNote is the last line of a summary for which not all was read, or not for one before it.
const skippedNote = "\n[%d entries were too many to be read for this summary.]"

var skipped = regexp.MustCompile(`\n\[(\d{1,15}) entries were too many to be read for this summary\.\]$`)

// skippedBefore is how many entries a summary says that it left out.
func skippedBefore(summary *continuo.Entry) int64 {
	found := skipped.FindStringSubmatch(summary.Content.String())
	if found == nil {
		return 0
	}
	count, _ := strconv.ParseInt(found[1], 10, 64) // of 15 digits at most
	return count
}

// previousText is what the summary before says, without the note on what it left out.
func (h *summaryInput) previousText() string {
	return skipped.ReplaceAllString(h.before.Content.String(), "")
}

// addPrevious takes along the summary at a seq.
func (h *summaryInput) addPrevious(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, seq int64) error {
	if seq < 1 || seq > conversation.LastSeq {
		return nil
	}
	for entry, err := range log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return fmt.Errorf("summarize: %w", err)
		}
		h.add(&entry)
	}
	return nil
}

// add takes an entry along if it is the summary that reaches furthest.
func (h *summaryInput) add(e *continuo.Entry) {
	known := window.IsSummary(e)
	if h.role != "" {
		known = crewview.IsNotes(e, h.role)
	}
	if !known || e.Summary.From < h.begin {
		return
	}
	switch reach := e.Summary.Through; {
	case reach >= h.through:
		h.covered = true
	case h.before == nil || reach > h.before.Summary.Through:
		h.before = e
	}
}

// findFirst finds what the user said first.
func (h *summaryInput) findFirst(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, from int64) error {
	rows := 0
	for entry, err := range log.Read(ctx, conversation, continuo.Range{From: from, To: min(h.through, from+maxFirstRows-1)}) {
		if err != nil {
			return fmt.Errorf("summarize: %w", err)
		}
		if rows++; rows > maxFirstRows {
			break
		}
		if entry.Role == continuo.User && tells(&entry) {
			h.first = &entry
			break
		}
	}
	return nil
}

// tells reports whether an entry says something that a summary may repeat.
func tells(e *continuo.Entry) bool {
	return !e.Hidden && e.Redacted == nil && !e.IsCue() && !e.IsPlaceholder()
}

// text is what a model makes a summary of.
func (h *summaryInput) text(tools bool) string {
	var b strings.Builder
	part := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "=== %s ===\n%s\n\n", title, text)
		}
	}
	if h.first != nil {
		part("The first request", indented(headOf(h.first.Content, maxUserChars)))
	}
	if h.before != nil {
		part("The summary so far", indented(h.previousText()))
		part("The decisions so far", indented(strings.Join(h.before.Summary.Decisions, "\n")))
	}
	if h.skipped > 0 {
		part("Not shown here", fmt.Sprintf("%d entries that stand between", h.skipped))
	}
	part("What was said since", said(h.entries, tools))
	return strings.TrimSpace(b.String())
}

// How many characters of a message a summary is made of.
const (
	maxUserChars   = 8000
	maxAnswerChars = 4000
	maxCallChars   = 200
	maxResultChars = 300
)

// speaks finds what would look like the beginning of somebody's message.
var speaks = regexp.MustCompile(`(?i)\b(user|system|assistant(?: ?\([^()\n]{1,80}\))?)(\s*[:：])`)

// said writes messages as text, each named after who says it. Further lines are indented, and names of speakers within
// a message stand in quotes, so that no part of it can pass for another's, wherever the text is cut.
func said(entries []continuo.Entry, tools bool) string {
	var b strings.Builder
	line := func(who, text string) {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", who, strings.TrimLeft(indented(speaks.ReplaceAllString(text, `"$1"$2`)), " "))
		}
	}
	for i := range entries {
		entry := &entries[i]
		switch entry.Role {
		case continuo.User:
			line("User", headOf(entry.Content, maxUserChars))
		case continuo.System:
			line("System", headOf(entry.Content, maxAnswerChars))
		case continuo.Assistant:
			line(saidBy(entry), headOf(entry.Content, maxAnswerChars))
			for _, call := range entry.ToolCalls {
				if tools {
					line("  Call", shorten(call.Name+" "+call.Arguments, maxCallChars))
				}
			}
		case continuo.Tool:
			if tools {
				line("  Result", headOf(entry.Content, maxResultChars))
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// saidBy names who gives an answer.
func saidBy(e *continuo.Entry) string {
	if e.Author == nil || e.Author.DisplayName == "" {
		return "Assistant"
	}
	return "Assistant (" + strings.Join(strings.Fields(e.Author.DisplayName), " ") + ")"
}

// headOf is the beginning of a message's text.
func headOf(content continuo.Content, most int) string {
	text := content.String()
	if content.IsParts() {
		var texts []string
		for _, part := range content.Parts() {
			if part.IsText() {
				texts = append(texts, part.Text)
			}
		}
		text = strings.Join(texts, "\n")
	}
	if len(text) > most*utf8.UTFMax {
		text = strings.ToValidUTF8(text[:most*utf8.UTFMax], "")
	}
	return shorten(text, most)
}

// indented is a text whose lines begin with two spaces. All that ends a line anywhere ends one here.
func indented(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) })
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return strings.Join(lines, "\n")
}
