package window

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// block is a part of a role's text that stands before the messages.
type block struct {
	text  string
	size  continuo.Size
	entry *continuo.Entry // what it was made from; nil for the reminder
	cut   bool            // only its beginning and its end are shown
}

// blocks makes the parts before the messages: the reminder, unless it is tight; the original request, if it is asked
// for; notes, or a summary. None takes more than its share of the limits.
func (r *roleBuild) blocks(limits budget, tight, original bool) []block {
	room := r.blockRoom(limits, tight)
	var blocks []block
	add := func(entry *continuo.Entry, text string, write func(string) string) {
		b := block{entry: entry, text: write(text)}
		fits := func(cut string) bool { return room.exceeded(r.sizeOfText(write(cut))) == "" }
		if b.size = r.sizeOfText(b.text); room.exceeded(b.size) != "" {
			b.cut = true
			body, ok := cutTo(text, room, fits)
			if !ok {
				body = headAndTail(text, minCut)
			}
			b.text = write(body)
			b.size = r.sizeOfText(b.text)
		}
		blocks = append(blocks, b)
	}
	if r.role.Reminder != "" && !tight {
		add(nil, r.role.Reminder, between(reminderBegin, reminderEnd, escapeTalk))
	}
	if original {
		add(r.original.unit.entries[0], r.original.body, between(requestBegin, requestEnd, r.original.text))
	}
	if r.notes != nil {
		add(r.notes, notesText(r.notes), between(notesBegin, notesEnd, escapeTalk))
	}
	if r.kind == RoleSummary {
		add(r.summary, saidIn(r.summary), between(summaryBegin, summaryEnd, escapeTalk))
	}
	return blocks
}

// between puts a text, as write gives it, between two lines.
func between(begin, end string, write func(string) string) func(string) string {
	return func(text string) string { return begin + "\n" + write(text) + "\n" + end }
}

// notesText is what notes say, and what was decided.
func notesText(e *continuo.Entry) string {
	text := strings.TrimSpace(saidIn(e))
	if len(e.Summary.Decisions) == 0 {
		return text
	}
	lines := []string{text, "Key decisions:"}
	for _, decision := range e.Summary.Decisions {
		lines = append(lines, "- "+oneLine(decision, maxDecision))
	}
	return strings.Join(lines, "\n")
}

// maxDecision is how many characters of a decision are shown.
const maxDecision = 500

// write writes the text of a layout as one message of the user. Its seq is that of the newest entry that it shows; the
// message has Seq 0 and no content where nothing is shown at all.
func (r *roleBuild) write(l layout) continuo.Message {
	message := continuo.Message{Role: continuo.User}
	var parts []string
	for _, b := range l.blocks {
		if b.entry != nil {
			message.Seq = max(message.Seq, b.entry.Seq)
		}
	}
	r.walk(l, func(t *talk, text string) {
		if t != nil {
			message.Seq = max(message.Seq, t.seq())
			if text == "" {
				text = t.text(t.body)
			}
		}
		parts = append(parts, text)
	})
	switch {
	case message.Seq > 0:
	case len(r.units) > 0: // a request cannot begin with an answer
		message.Seq, parts = r.ask.Seq, append(parts, nothingSaid)
	default:
		return continuo.Message{}
	}
	message.Content = continuo.Text(strings.Join(parts, separator))
	message.Size = r.shaper.size(&message, false)
	return message
}

// nothingSaid stands before a role's own turn where there is nothing that it could be shown.
const nothingSaid = moreBegin + " Nothing has been said yet."

// turnLeftOut stands in the place of the oldest messages of a role's own turn.
const turnLeftOut = moreBegin + " Earlier tool calls of your turn are left out."

// marker stands in a gap of the role's own turn.
func (r *roleBuild) marker() continuo.Message {
	message := continuo.Message{Role: continuo.User, Content: continuo.Text(turnLeftOut)}
	message.Size = r.shaper.size(&message, false)
	return message
}

// arrangeTurn cuts the messages of the role's own turn down until they fit behind the text: full outputs become
// previews, previews one line, and then the oldest groups go. It reports false where not even the newest fits.
func (r *roleBuild) arrangeTurn(limits budget) bool {
	r.openOver = ""
	pieces := make([]piece, len(r.units))
	total := r.text.Size
	for i, u := range r.units {
		pieces[i] = piece{unit: u, messages: u.at(r.shaper, whole).messages}
		total = total.Add(u.at(r.shaper, whole).size)
	}
	r.openOver = limits.exceeded(total)
	for _, l := range []level{preview, line} {
		for i := 0; i < len(pieces) && limits.exceeded(total) != ""; i++ {
			u := pieces[i].unit
			total = minus(total, u.at(r.shaper, pieces[i].level).size).Add(u.at(r.shaper, l).size)
			pieces[i] = piece{unit: u, level: l, messages: u.at(r.shaper, l).messages}
		}
	}
	marked := r.marker()
	for gone := 0; len(pieces) > 1 && limits.exceeded(total) != ""; gone++ {
		if gone == 0 {
			total = total.Add(marked.Size)
		}
		total = minus(total, pieces[0].unit.at(r.shaper, line).size)
		pieces = pieces[1:]
	}
	if len(pieces) < len(r.units) {
		pieces = append([]piece{{messages: []continuo.Message{marked}}}, pieces...)
	}
	r.open = pieces
	return limits.exceeded(total) == ""
}

func minus(s, other continuo.Size) continuo.Size {
	return continuo.Size{Messages: s.Messages - other.Messages, Chars: s.Chars - other.Chars, Tokens: s.Tokens - other.Tokens}
}
