package summary

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/engine/internal/brief"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/window"
)

const (
	// maxSummarized bounds the characters of entries that are read for one summary. Each entry counts for at least
	// minSummarized, which bounds their number too, and for at most what a summary uses of it, so that one very long
	// entry does not displace all earlier ones.
	maxSummarized = 200_000
	minSummarized = 40
	// maxFirstRows bounds how many entries are searched for the first request.
	maxFirstRows = 64
)

// summaryInput is the input of a summary.
type summaryInput struct {
	role          string
	begin         int64            // nothing before this seq is read
	from, through int64            // the range that it covers
	before        *continuo.Entry  // the earlier summary or notes to include; nil for none
	first         *continuo.Entry  // the user's first message; nil for none
	entries       []continuo.Entry // the messages since, oldest first
	skipped       int64            // the number of older entries that were not read
	covered       bool             // an existing summary reaches as far as this one would
}

// readSummaryInput reads the entries from and through that the newest earlier summary does not cover. Where they are
// too many the oldest are left out, and the summary says how many. Known is the seq of a summary to include however
// old it is; 0 for none.
func (s *Summaries) readSummaryInput(ctx context.Context, conversation continuo.Conversation, from, through int64, role string, known int64) (*summaryInput, error) {
	h := &summaryInput{role: role, begin: from, from: from, through: through}
	if err := h.addPrevious(ctx, s.log, conversation, known); err != nil {
		return nil, err
	}
	left, oldest := maxSummarized, through+1
	for entry, err := range s.log.Read(ctx, conversation, continuo.Range{From: from, Backward: true}) {
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
		if oldest = entry.Seq; isSummarizable(&entry) {
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
	return h, h.findFirst(ctx, s.log, conversation, from)
}

// skippedNote is the last line of a summary for which some entries were not read, or that includes such a summary.
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

// previousText is the text of the earlier summary, without skippedNote.
func (h *summaryInput) previousText() string {
	return skipped.ReplaceAllString(h.before.Content.String(), "")
}

// addPrevious includes the summary at a seq.
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

// add includes an entry if it is the summary that reaches furthest.
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

// findFirst finds the user's first message.
func (h *summaryInput) findFirst(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, from int64) error {
	rows := 0
	for entry, err := range log.Read(ctx, conversation, continuo.Range{From: from, To: min(h.through, from+maxFirstRows-1)}) {
		if err != nil {
			return fmt.Errorf("summarize: %w", err)
		}
		if rows++; rows > maxFirstRows {
			break
		}
		if entry.Role == continuo.User && isSummarizable(&entry) {
			h.first = &entry
			break
		}
	}
	return nil
}

// isSummarizable reports whether an entry has text that a summary may repeat.
func isSummarizable(e *continuo.Entry) bool {
	return !e.Hidden && e.Redacted == nil && !e.IsCue() && !e.IsPlaceholder()
}

// text is the text that a model summarizes.
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
		part("Not shown here", fmt.Sprintf("%d entries between", h.skipped))
	}
	part("What was said since", conversationText(h.entries, tools))
	return strings.TrimSpace(b.String())
}

// The bounds of a message's text in the input of a summary, in characters.
const (
	maxUserChars   = 8000
	maxAnswerChars = 4000
	maxCallChars   = 200
	maxResultChars = 300
)

// speakerPattern matches text that looks like the beginning of a message, with its speaker's name.
var speakerPattern = regexp.MustCompile(`(?i)\b(user|system|assistant(?: ?\([^()\n]{1,80}\))?)(\s*[:：])`)

// conversationText writes messages as text, each with its speaker's name. Further lines are indented, and speaker names within a
// message are quoted, so that no part of a message can look like another's, wherever the text is cut.
func conversationText(entries []continuo.Entry, tools bool) string {
	var b strings.Builder
	line := func(speaker, text string) {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", speaker, strings.TrimLeft(indented(speakerPattern.ReplaceAllString(text, `"$1"$2`)), " "))
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
			line(speakerOf(entry), headOf(entry.Content, maxAnswerChars))
			for _, call := range entry.ToolCalls {
				if tools {
					line("  Call", brief.Shorten(call.Name+" "+call.Arguments, maxCallChars))
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

// speakerOf is the name of an answer's speaker.
func speakerOf(e *continuo.Entry) string {
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
	return brief.Shorten(text, most)
}

// indented is a text whose lines begin with two spaces. Every character that any program treats as a line break
// counts.
func indented(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) })
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return strings.Join(lines, "\n")
}
