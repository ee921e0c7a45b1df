package window

import (
	"fmt"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// level says how far the tool outputs of a unit are cut down.
type level int

const (
	whole   level = iota // up to View.ToolOutputChars, a preview above
	preview              // a preview
	line                 // one line
	levels  = 3
)

// shaper turns entries into messages, always the same way: a message's shape depends on the view, the
// level and the entry alone.
type shaper struct {
	view     View
	counter  continuo.Counter
	provider string
}

// message shapes one entry. The verdict is Kept when nothing was cut.
func (s shaper) message(entry *continuo.Entry, at level) (continuo.Message, continuo.Verdict) {
	message := continuo.Message{
		Seq: entry.Seq, Role: entry.Role, Content: entry.Content, ToolCalls: entry.ToolCalls,
		ToolCallID: entry.ToolCallID, Name: entry.Name, Entry: entry,
	}
	verdict := continuo.Kept
	switch {
	case entry.Role == continuo.Tool:
		verdict = s.cutResult(&message, at)
	case entry.Role == continuo.Assistant:
		verdict = s.cutCalls(&message)
		addError(&message)
	case entry.IsCue():
		message.Role = continuo.User
	}
	message.Size = s.size(&message, verdict == continuo.Kept && entry.Error == nil)
	return message, verdict
}

// Overheads in tokens that the chat protocols add to a message and to a call: role, separators, ids.
// OpenAI's cookbook on counting tokens gives 3 to 4 for a message; calls are our measure of their JSON.
const (
	messageOverhead = 4
	callOverhead    = 8
)

// size measures a message. What was counted at append is used again where nothing was changed.
func (s shaper) size(m *continuo.Message, unchanged bool) continuo.Size {
	size := continuo.Size{Messages: 1, Tokens: messageOverhead + callOverhead*len(m.ToolCalls)}
	if unchanged && m.Entry.Tokenizer == s.counter.Name() {
		size.Chars += m.Entry.Chars
		size.Tokens += m.Entry.Tokens
	} else {
		shown := continuo.Measure(m.Content, m.ToolCalls, s.counter)
		size.Chars += shown.Chars
		size.Tokens += shown.Tokens
	}
	if m.Name != "" {
		size.Tokens += s.counter.Count(m.Name) + 1
	}
	if e := m.Entry; e != nil && e.Reasoning != nil && e.Vendor[s.provider] != nil {
		size.Tokens += s.counter.Count(e.Reasoning.Text)
	}
	return size
}

func (s shaper) cutResult(m *continuo.Message, at level) continuo.Verdict {
	if kept, ok := m.Entry.Preview(); ok {
		return s.cutPreview(m, kept, at)
	}
	text := m.Content.String()
	chars := utf8.RuneCountInString(text)
	fits := s.view.ToolOutputChars == 0 || chars <= s.view.ToolOutputChars
	switch {
	case at == line || s.view.OmitToolResults:
		short := leftOut(chars, m.Entry.OutputRef)
		if chars > utf8.RuneCountInString(short) || hasMedia(m.Content) {
			m.Content = continuo.Text(short)
			return continuo.Truncated
		}
	case (at == preview || !fits) && chars > s.view.PreviewChars+previewSlack:
		m.Content = continuo.Text(previewOf(text, s.view.PreviewChars, m.Entry.OutputRef))
		return continuo.Previewed
	}
	return continuo.Kept
}

// cutPreview is cutResult for an output that is kept beside the log: the most that is shown of it is the
// preview that its entry holds.
func (s shaper) cutPreview(m *continuo.Message, kept continuo.Preview, at level) continuo.Verdict {
	switch {
	case at == line || s.view.OmitToolResults:
		m.Content = continuo.Text(leftOut(kept.Chars, kept.Full))
		return continuo.Truncated
	case at == preview || s.view.ToolOutputChars > 0 && kept.Chars > s.view.ToolOutputChars:
		m.Content = continuo.Text(shorter(kept, s.view.PreviewChars).String())
	}
	return continuo.Previewed
}

// leftOut is the one line in the place of a result.
func leftOut(chars int, ref string) string {
	return fmt.Sprintf("[Tool result left out: %d characters. Full output: %s]", chars, ref)
}

// previewSlack is how many characters a preview's own words take: shorter texts are not worth cutting.
const previewSlack = 300

func hasMedia(content continuo.Content) bool {
	for _, part := range content.Parts() {
		if !part.IsText() {
			return true
		}
	}
	return false
}

// cutCalls replaces arguments above the limit by a JSON object that shows their head.
func (s shaper) cutCalls(m *continuo.Message) continuo.Verdict {
	verdict := continuo.Kept
	limit := s.view.ToolOutputChars
	for i, call := range m.ToolCalls {
		if limit == 0 || len(call.Arguments) <= limit || utf8.RuneCountInString(call.Arguments) <= limit {
			continue
		}
		if verdict == continuo.Kept {
			m.ToolCalls = append([]continuo.ToolCall(nil), m.ToolCalls...)
			verdict = continuo.Previewed
		}
		m.ToolCalls[i].Arguments = string(rawjson.MustMarshal(struct {
			Preview string `json:"arguments_preview"`
			Chars   int    `json:"characters"`
			Full    string `json:"full_arguments"`
		}{cutHead(call.Arguments, s.view.PreviewChars), utf8.RuneCountInString(call.Arguments), CallRef(m.Seq, i)}))
	}
	return verdict
}

// CallRef is the alias path of the whole arguments of an entry's call.
func CallRef(seq int64, call int) string {
	return fmt.Sprintf("@state/logs/tool-calls/%d-%d.json", seq, call)
}

// addError writes an entry's error where the model can see it, so that it can go on from a partial answer.
func addError(m *continuo.Message) {
	failure := m.Entry.Error
	if failure == nil {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s reason=%s retryable=%t", failure.Code, failure.Reason, failure.Retryable)
	if failure.Message != "" {
		fmt.Fprintf(&text, "\n%s", failure.Message)
	}
	for _, call := range failure.PartialToolCalls {
		fmt.Fprintf(&text, "\nunfinished tool call: %s %s", call.Name, cutHead(call.Arguments, 400))
	}
	switch {
	case m.Content.IsParts():
		m.Content = continuo.Parts(append(m.Content.Parts()[:len(m.Content.Parts()):len(m.Content.Parts())], continuo.TextPart(text.String()))...)
	case m.Content.IsEmpty():
		m.Content = continuo.Text(text.String())
	default:
		m.Content = continuo.Text(m.Content.String() + "\n\n" + text.String())
	}
}
