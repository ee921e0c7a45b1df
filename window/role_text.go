package window

import (
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// What a role is shown, as one text; in a list of messages each part is a message of its own:
//
//	[ORIGINAL REQUEST]
//	User: the first message since the reset, where it is not among the messages below
//	[END REQUEST]
//
//	[MORE] 24 earlier messages are left out.
//
//	[NOTES] or [CONTEXT SUMMARY]
//	what stands for messages that are left out
//	[END NOTES] or [RECENT]
//
//	User (Ann): a message
//
//	Assistant (Builder): another message
//
//	[CURRENT REQUEST]
//	User (Ann): the newest message of the user, where it is not among the messages above
//	[END REQUEST]
//
//	[SYSTEM REMINDER]
//	the system prompt, in a text
//	[END REMINDER]
//
// Everything above [CURRENT REQUEST] stays the same until the window moves.

// rolePart is a part of what a role is shown that stands before or behind the messages.
type rolePart struct {
	text    string
	size    continuo.Size
	entry   *continuo.Entry // what it was made from; nil for a line
	cut     bool            // only its beginning and its end are shown
	behind  bool            // it stands behind the messages
	request bool            // it is the original request, or the current one
}

// around lists the parts before and behind the messages.
func (p *rolePlanner) around(l layout) []rolePart {
	log := p.log
	var parts []rolePart
	line := func(text string, behind bool) {
		parts = append(parts, rolePart{text: text, size: p.sizeOf(text), behind: behind})
	}
	original := log.original != nil && !p.shows(l, log.original)
	if original {
		parts = append(parts, p.block(l.tight, blockOriginal, log.original.unit.entries[0]))
	}
	left := l.window.Left
	if l.window.Start == 0 { // the window is being moved
		left = p.left(l)
	}
	if left != 0 {
		line(leftOutLine(left, false), false)
	}
	if l.standIn != nil {
		if l.standIn.PartType == continuo.PartCatchUp {
			line(leftOutLine(l.standIn.Summary.Messages, true), false)
		}
		kind := blockSummary
		if l.standIn.PartType == continuo.PartNotes {
			kind = blockNotes
		}
		parts = append(parts, p.block(l.tight, kind, l.standIn))
	}
	if log.held != nil {
		line(newerFollows, true)
	}
	if log.newest != nil && !p.shows(l, log.newest) && !(original && log.newest.seq() == log.original.seq()) {
		parts = append(parts, p.block(l.tight, blockCurrent, log.newest.unit.entries[0]))
	}
	if p.role.Reminder != "" && !l.tight {
		parts = append(parts, p.block(false, blockReminder, nil))
	}
	return parts
}

// leftOutLine stands in the place of messages that are left out; count 0 or less stands for many.
func leftOutLine(count int, summarized bool) string {
	what := "Many earlier messages are left out"
	switch {
	case count == 1:
		what = "1 earlier message is left out"
	case count > 1:
		what = fmt.Sprintf("%d earlier messages are left out", count)
	}
	switch {
	case summarized && count == 1:
		what += "; a summary of it follows"
	case summarized:
		what += "; a summary of them follows"
	}
	return moreBegin + " " + what + "."
}

// newerFollows stands behind the messages where a group waits whose calls have no results yet.
const newerFollows = moreBegin + " 1 newer message follows in your next turn."

// blockKind says what a block holds.
type blockKind int

const (
	blockOriginal blockKind = iota
	blockCurrent
	blockNotes
	blockSummary
	blockReminder
)

// blockKey names a block that was made.
type blockKey struct {
	kind  blockKind
	tight bool
	seq   int64
}

// block makes a block, once. None but the current request takes more than its share of the limits.
func (p *rolePlanner) block(tight bool, kind blockKind, e *continuo.Entry) rolePart {
	key := blockKey{kind: kind, tight: tight}
	if e != nil {
		key.seq = e.Seq
	}
	if made, ok := p.blocks[key]; ok {
		return made
	}
	part := p.newBlock(tight, kind, e)
	p.blocks[key] = part
	return part
}

func (p *rolePlanner) newBlock(tight bool, kind blockKind, e *continuo.Entry) rolePart {
	part := rolePart{entry: e, behind: kind == blockCurrent || kind == blockReminder, request: kind == blockOriginal || kind == blockCurrent}
	var text string
	var write func(string) string
	switch kind {
	case blockOriginal:
		text, write = p.log.original.said, between(requestBegin, requestEnd, p.log.original.text)
	case blockCurrent:
		text, write = p.log.newest.said, between(currentBegin, requestEnd, p.log.newest.text)
	case blockNotes:
		text, write = notesText(e), between(notesBegin, notesEnd, escapeTalk)
	case blockSummary:
		text, write = saidIn(e), between(summaryBegin, summaryEnd, escapeTalk)
	case blockReminder:
		text, write = p.role.Reminder, between(reminderBegin, reminderEnd, escapeTalk)
	}
	part.text = write(text)
	part.size = p.sizeOf(part.text)
	room := p.blockRoom(tight)
	if kind == blockCurrent || room.exceeded(part.size) == "" {
		return part
	}
	part.cut = true
	body, ok := cutTo(text, room, func(cut string) bool { return room.exceeded(p.sizeOf(write(cut))) == "" })
	if !ok {
		body = headAndTail(text, minCut)
	}
	part.text = write(body)
	part.size = p.sizeOf(part.text)
	return part
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

// textOf is a message as it is shown: a role's own answer in a list of messages bare, everything else under a label.
func (p *rolePlanner) textOf(m *roleMessage, body string) string {
	if p.role.Messages && m.isAnswer() {
		return body
	}
	return m.text(body)
}

// write writes what a layout shows: a list of messages, or one message of the user, or nothing where nothing is shown.
func (p *rolePlanner) write(l layout) []continuo.Message {
	var messages []continuo.Message
	around := p.around(l)
	put := func(behind bool) {
		for _, part := range around {
			if part.behind == behind {
				messages = append(messages, continuo.Message{Role: continuo.User, Content: continuo.Text(part.text), Size: part.size, Passing: part.behind})
			}
		}
	}
	put(false)
	for i, m := range p.log.messages[l.first:] {
		body, size := m.body, m.size
		if l.cut != "" && l.first+i == len(p.log.messages)-1 {
			body, size = l.cut, p.sizeOf(p.textOf(m, l.cut))
		}
		message := continuo.Message{Seq: m.seq(), Role: continuo.User, Content: continuo.Text(p.textOf(m, body)), Size: size}
		if m.isAnswer() {
			message.Role = continuo.Assistant
			if e := m.unit.entries[0]; e.Content.IsText() {
				message.Entry = e
			}
		}
		messages = append(messages, message)
	}
	put(true)
	if p.role.Messages {
		return p.askedLast(messages)
	}
	return p.joined(messages, around)
}

// askedLast is a list of messages that ends with one of the user, and begins with one before the role's own turn.
func (p *rolePlanner) askedLast(messages []continuo.Message) []continuo.Message {
	text := ""
	switch n := len(messages); {
	case n > 0 && messages[n-1].Role == continuo.Assistant:
		text = nothingNew
	case n == 0 && len(p.log.turn) > 0:
		text = nothingSaid
	default:
		return messages
	}
	return append(messages, continuo.Message{Role: continuo.User, Content: continuo.Text(text), Size: p.sizeOf(text), Passing: true})
}

// joined is one message of the user with all that is shown. Its seq is that of the newest entry that it shows.
func (p *rolePlanner) joined(messages []continuo.Message, around []rolePart) []continuo.Message {
	joined := continuo.Message{Role: continuo.User}
	var texts []string
	for _, part := range around {
		if part.entry != nil {
			joined.Seq = max(joined.Seq, part.entry.Seq)
		}
	}
	for _, m := range messages {
		joined.Seq = max(joined.Seq, m.Seq)
		joined.Size = joined.Size.Add(m.Size)
		texts = append(texts, m.Content.String())
	}
	switch {
	case joined.Seq > 0:
	case len(p.log.turn) > 0: // a request cannot begin with an answer
		joined.Seq, texts = p.log.ask.Seq, append(texts, nothingSaid)
		joined.Size = joined.Size.Add(p.sizeOf(nothingSaid))
	default:
		return nil
	}
	joined.Content = continuo.Text(strings.Join(texts, separator))
	joined.Size = joined.Size.Add(continuo.Size{Chars: -len(separator), Tokens: messageOverhead})
	joined.Size.Messages = 1
	return []continuo.Message{joined}
}

const (
	// nothingSaid stands before a role's own turn where there is nothing that it could be shown.
	nothingSaid = moreBegin + " Nothing has been said yet."
	// nothingNew stands behind a role's own answer.
	nothingNew = moreBegin + " Nothing was said since."
)

// RoleText is what the plan of a role shows before the role's own open turn, as one text: also where the role is shown a
// list of messages.
func RoleText(plan *continuo.Plan) string {
	var texts []string
	for _, m := range plan.Messages[:plan.Role.Before] {
		text := m.Content.String()
		if m.Role == continuo.Assistant {
			label := "Assistant:"
			if m.Entry != nil {
				label = labelOf(m.Entry)
			}
			text = label + " " + escapeTalk(text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, separator)
}
