package window

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Level says how far the tool outputs of a unit are cut down.
type Level int

// The levels.
const (
	Whole   Level = iota // whole up to View.ToolOutputChars, a preview above
	Preview              // a preview
	Line                 // one line
	levels  = 3
)

// shaper turns entries into messages, deterministically: a message's shape depends only on the view, the
// level and the entry.
type shaper struct {
	view     View
	counter  continuo.Counter
	provider string
}

// message shapes one entry, which the window may give up for a reason. The verdict is Kept when nothing was cut.
func (s *shaper) message(entry *continuo.Entry, at Level, givenUp string) (Message, Verdict) {
	message := Message{
		Seq: entry.Seq, Role: entry.Role, Content: entry.Content, ToolCalls: entry.ToolCalls,
		ToolCallID: entry.ToolCallID, Name: entry.Name, Entry: entry,
	}
	if entry.IsCue() || entry.HoldsRecall() {
		message.Role = continuo.User
	}
	whole, verdict := message, Kept
	switch {
	case cutsImages(entry, at, givenUp):
		verdict = cutImages(&message)
	case entry.Role == continuo.Tool:
		verdict = s.cutResult(&message, max(at, givenUpLevels[givenUp]))
	case entry.Role == continuo.Assistant:
		verdict = s.cutCalls(&message)
	}
	if verdict != Kept {
		if size := s.size(&message, false); s.saves(size, &whole) {
			message.Size = size
		} else {
			message, verdict = whole, asStored(entry)
		}
	}
	failed := entry.Role == continuo.Assistant && entry.Error != nil
	if failed {
		addError(&message)
	}
	if failed || message.Size == (continuo.Size{}) {
		message.Size = s.size(&message, !failed)
	}
	return message, verdict
}

// asStored is the verdict on an entry that is shown with its content in the log, which is a preview if the
// whole output is stored beside the log.
func asStored(entry *continuo.Entry) Verdict {
	if _, ok := entry.Preview(); ok {
		return Previewed
	}
	return Kept
}

// saves reports whether a shortened form is worth using: it is not larger than the content of the whole, neither in
// characters (not compared if the whole has parts other than text) nor in tokens, although the protocol's overhead and
// the name count for the short form only. Reasoning is the same in both.
func (s *shaper) saves(short continuo.Size, whole *Message) bool {
	full := s.content(whole, true)
	return short.Tokens-s.reasoning(whole) <= full.Tokens && (short.Chars <= full.Chars || hasMedia(whole.Content))
}

// MessageOverhead and callOverhead are the tokens that the chat protocols add to a message and to a call: role,
// separators, ids. OpenAI's cookbook on counting tokens gives 3 to 4 for a message; calls are our measure of their JSON.
const (
	MessageOverhead = 4
	callOverhead    = 8
)

// size measures a message. It reuses the count made at append if nothing was changed.
func (s *shaper) size(m *Message, unchanged bool) continuo.Size {
	size := s.content(m, unchanged)
	size.Messages = 1
	size.Tokens += MessageOverhead + callOverhead*len(m.ToolCalls) + s.reasoning(m)
	if m.Name != "" {
		size.Tokens += s.counter.Count(m.Name) + 1
	}
	return size
}

// content measures the content and the calls of a message, without what a protocol adds.
func (s *shaper) content(m *Message, unchanged bool) continuo.Size {
	if unchanged && m.Entry.Tokenizer == s.counter.Name() {
		return continuo.Size{Chars: m.Entry.Chars, Tokens: m.Entry.Tokens}
	}
	return continuo.Measure(m.Content, m.ToolCalls, s.counter)
}

// reasoning is the number of tokens of the reasoning that is returned to the request's provider.
func (s *shaper) reasoning(m *Message) int {
	if e := m.Entry; e != nil && e.Reasoning != nil && e.Vendor[s.provider] != nil {
		return s.counter.Count(e.Reasoning.Text)
	}
	return 0
}

// charsOf is the number of characters of a result's text: the count made at append, where there is one.
func charsOf(e *continuo.Entry) int {
	if e.Tokenizer != "" && e.Content.IsText() && len(e.ToolCalls) == 0 {
		return e.Chars
	}
	return utf8.RuneCountInString(e.Content.String())
}

func (s *shaper) cutResult(m *Message, at Level) Verdict {
	if kept, ok := m.Entry.Preview(); ok {
		return s.cutPreview(m, kept, at)
	}
	text := m.Content.String()
	chars := charsOf(m.Entry)
	fits := s.view.ToolOutputChars == 0 || chars <= s.view.ToolOutputChars
	switch {
	case at == Line || s.view.OmitToolResults:
		m.Content = continuo.Text(leftOut(chars, m.Entry.OutputRef))
		return Truncated
	case (at == Preview || !fits) && chars > s.view.PreviewChars+previewSlack:
		m.Content = continuo.Text(previewOf(text, chars, s.view.PreviewChars, m.Entry.OutputRef))
		return Previewed
	}
	return Kept
}

// cutPreview is cutResult for an output that is stored beside the log: at most the preview in its entry is
// shown.
func (s *shaper) cutPreview(m *Message, kept continuo.Preview, at Level) Verdict {
	switch {
	case at == Line || s.view.OmitToolResults:
		m.Content = continuo.Text(leftOut(kept.Chars, kept.Full))
		return Truncated
	case at == Preview || s.view.ToolOutputChars > 0 && kept.Chars > s.view.ToolOutputChars:
		m.Content = continuo.Text(shorter(kept, s.view.PreviewChars).String())
	}
	return Previewed
}

// cutByLevel reports whether an entry that is shown as a preview would be shown longer at the level [Whole].
func (s *shaper) cutByLevel(entry *continuo.Entry, shown *Message, at Level) bool {
	if at == Whole || entry.Role != continuo.Tool {
		return false // arguments of calls are cut alike at every level
	}
	limit := s.view.ToolOutputChars
	if kept, ok := entry.Preview(); ok {
		return (limit == 0 || kept.Chars <= limit) && shown.Content.String() != entry.Content.String()
	}
	return limit == 0 || charsOf(entry) <= limit
}

// leftOut is the one line that replaces a result.
func leftOut(chars int, ref string) string {
	return leftOutHead + strconv.Itoa(chars) + leftOutMiddle + ref + leftOutEnd
}

const (
	leftOutHead   = "[Tool result left out: "
	leftOutMiddle = " characters. Full output: "
	leftOutEnd    = "]"
)

// previewSlack is the length of a preview's own text in characters: shorter texts are not worth cutting.
const previewSlack = 300

func hasMedia(content continuo.Content) bool {
	for _, part := range content.Parts() {
		if !part.IsText() {
			return true
		}
	}
	return false
}

// cutCalls replaces arguments above the limit by a JSON object with their head.
func (s *shaper) cutCalls(m *Message) Verdict {
	verdict := Kept
	limit := s.view.ToolOutputChars
	for i, call := range m.ToolCalls {
		if limit == 0 || len(call.Arguments) <= limit || utf8.RuneCountInString(call.Arguments) <= limit {
			continue
		}
		if verdict == Kept {
			m.ToolCalls = append([]continuo.ToolCall(nil), m.ToolCalls...)
			verdict = Previewed
		}
		m.ToolCalls[i].Arguments = string(rawjson.MustMarshal(struct {
			Preview string `json:"arguments_preview"`
			Chars   int    `json:"characters"`
			Full    string `json:"full_arguments"`
		}{plaintext.Head(call.Arguments, s.view.PreviewChars), utf8.RuneCountInString(call.Arguments), CallRef(m.Seq, i)}))
	}
	return verdict
}

// CallRef is the alias path under which the whole arguments of an entry's call are read.
func CallRef(seq int64, call int) string {
	return fmt.Sprintf("@state/logs/tool-calls/%d-%d.json", seq, call)
}

// addError adds an entry's error to the message, so that the model can continue from a partial answer. The
// error's own message may name hosts and quote a provider: only the kind of failure is shown.
func addError(m *Message) {
	failure := m.Entry.Error
	var text strings.Builder
	fmt.Fprintf(&text, "%s reason=%s retryable=%t", failure.Code, failure.Reason, failure.Retryable)
	if cause := causeOf(failure.Reason); cause != "" {
		fmt.Fprintf(&text, "\n%s", cause)
	}
	for _, call := range failure.PartialToolCalls {
		fmt.Fprintf(&text, "\nunfinished tool call: %s %s", call.Name, plaintext.Head(call.Arguments, 400))
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

// causeOf describes a kind of failure in a few words; "" for an unknown one.
func causeOf(reason continuo.FailureReason) string {
	switch reason {
	case continuo.ReasonTimeout:
		return "The answer took too long."
	case continuo.ReasonNetwork:
		return "The connection to the model broke."
	case continuo.ReasonRateLimit:
		return "The model's provider refused more requests for the time being."
	case continuo.ReasonUpstream:
		return "The model's provider failed."
	case continuo.ReasonContentFilter:
		return "A content filter ended the answer."
	case continuo.ReasonCancelled:
		return "A person stopped the answer."
	case continuo.ReasonInterrupted:
		return "The program stopped in the middle of the answer."
	case continuo.ReasonContextOverflow:
		return "The request was larger than the model's context window."
	case continuo.ReasonBudget:
		return "The request was not sent, because a budget was used up."
	case continuo.ReasonTurnLimit:
		return "The turn reached its limit on model requests."
	}
	return ""
}
