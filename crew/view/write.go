package view

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

const (
	// noMessages precedes a role's own turn where there is no message to show.
	noMessages = moreBegin + " Nothing has been said yet."
	// nothingNew follows a role's own answer.
	nothingNew = moreBegin + " Nothing was said since."
)

// write writes the messages of a layout: a list, or one message of the user, or none where nothing is shown.
func (p *planner) write(l layout) []window.Message {
	var messages []window.Message
	around := p.around(l)
	put := func(after bool) {
		for _, part := range around {
			if part.after == after {
				messages = append(messages, window.Message{Role: continuo.User, Content: continuo.Text(part.text), Size: part.size, Passing: part.after})
			}
		}
	}
	put(false)
	for i := l.first; i < len(p.backlog.messages); i++ {
		messages = append(messages, p.writeMessage(l, i))
		for _, block := range p.recallsAfter(l, i) {
			messages = append(messages, window.Message{Seq: block.entry.Seq, Role: continuo.User, Content: continuo.Text(block.text), Size: block.size})
		}
	}
	put(true)
	if p.role.Messages {
		return p.endingWithUser(messages)
	}
	return p.joined(messages, around)
}

// writeMessage writes a message of a layout.
func (p *planner) writeMessage(l layout, i int) window.Message {
	m := p.backlog.messages[i]
	body, size := m.body, m.size
	if l.cut != "" && i == len(p.backlog.messages)-1 {
		body, size = l.cut, p.sizeOf(p.textOf(m, l.cut))
	}
	written := window.Message{Seq: m.seq(), Role: continuo.User, Content: continuo.Text(p.textOf(m, body)), Size: size}
	if m.isAnswer() {
		written.Role = continuo.Assistant
		if e := m.unit.Entries[0]; e.Content.IsText() {
			written.Entry = e
		}
	}
	return written
}

// endingWithUser is a list of messages that ends with one of the user, and is not empty before the role's own turn.
func (p *planner) endingWithUser(messages []window.Message) []window.Message {
	text := ""
	switch n := len(messages); {
	case n > 0 && messages[n-1].Role == continuo.Assistant:
		text = nothingNew
	case n == 0 && len(p.backlog.turn) > 0:
		text = noMessages
	default:
		return messages
	}
	return append(messages, window.Message{Role: continuo.User, Content: continuo.Text(text), Size: p.sizeOf(text), Passing: true})
}

// joined is one message of the user with everything that is shown. Its seq is that of the newest entry in it.
func (p *planner) joined(messages []window.Message, around []part) []window.Message {
	joined := window.Message{Role: continuo.User}
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
	case len(p.backlog.turn) > 0: // a request cannot begin with an answer
		joined.Seq, texts = p.backlog.cue.Seq, append(texts, noMessages)
		joined.Size = joined.Size.Add(p.sizeOf(noMessages))
	default:
		return nil
	}
	joined.Content = continuo.Text(strings.Join(texts, separator))
	joined.Size = joined.Size.Add(continuo.Size{Chars: -len(separator), Tokens: window.MessageOverhead})
	joined.Size.Messages = 1
	return []window.Message{joined}
}

// Text is what a role's plan shows before the role's own open turn, as one text, even if the role is shown a list of
// messages.
func Text(plan *window.Plan) string {
	var texts []string
	for _, m := range plan.Messages[:plan.Role.Before] {
		text := m.Content.String()
		if m.Role == continuo.Assistant {
			label := "Assistant:"
			if m.Entry != nil {
				label = labelOf(m.Entry)
			}
			text = label + " " + escape(text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, separator)
}
