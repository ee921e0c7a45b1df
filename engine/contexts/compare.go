package contexts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/linediff"
)

// ComparisonSide selects what is compared: the request of an answer, or what a view shows.
type ComparisonSide struct {
	Conversation continuo.Conversation
	// Request is the seq of the answer whose request it is; 0 for a view.
	Request int64
	// View, Crew and At are those of [Request].
	View, Crew string
	At         int64
}

// Comparison is two requests or contexts, with their parts aligned.
type Comparison struct {
	Left  Compared `json:"left"`
	Right Compared `json:"right"`
	// SharedBytes is the length of the beginning that both bodies have in common.
	SharedBytes int64 `json:"shared_bytes"`
	// Exact says that parts are the same where their bytes are; else, where both are of different protocols, where their roles,
	// names and texts are.
	Exact bool `json:"exact"`
	// Parts are those of both bodies: the same and the removed ones make the left body, the same and the inserted ones the
	// right one; a changed one is in both.
	Parts []ComparedPart `json:"parts"`
}

// Compared is one side of a comparison.
type Compared struct {
	ConversationID string `json:"conversation_id"`
	// Title is the conversation's, else its key.
	Title string `json:"title"`
	// Request is the seq of the answer whose request it is; absent for a context.
	Request int64  `json:"request,omitempty"`
	View    string `json:"view"`
	At      int64  `json:"at"` // the newest seq that it could show
	// Protocol is the wire format of the body; `text` of a context that is a text.
	Protocol string `json:"protocol"`
	Model    string `json:"model,omitempty"` // that answered; absent for a context
	Bytes    int64  `json:"bytes"`
	Parts    int    `json:"parts"`
	Tokens   int    `json:"tokens"` // of all parts
	// Usage is what the provider counted; absent for a context.
	Usage *continuo.Usage `json:"usage,omitempty"`
}

// PartChange says in which of two bodies a part is.
type PartChange string

// The values of PartChange.
const (
	PartSame     PartChange = "same"
	PartChanged  PartChange = "changed"
	PartRemoved  PartChange = "removed"  // only in the left body
	PartInserted PartChange = "inserted" // only in the right one
)

// ComparedPart is a part of one body or of both.
type ComparedPart struct {
	Change PartChange   `json:"change"`
	Left   *RequestPart `json:"left,omitempty"`
	Right  *RequestPart `json:"right,omitempty"`
	// Text is the beginning of the part's text; absent of a changed one.
	Text string `json:"text,omitempty"`
	// Words are the beginnings of both texts of a changed part.
	Words []linediff.Line `json:"words,omitempty"`
}

const (
	// maxSameText bounds the text of parts that both bodies have, maxComparedText that of the others, in characters.
	maxSameText     = 200
	maxComparedText = 40_000
)

// built is a side that was built.
type built struct {
	shown Compared
	body  []byte
	parts []RequestPart
}

// Compare aligns the parts of two requests or contexts. It calls no model and changes nothing. An error that one of the
// sides caused is a *SideError.
func (cx *Contexts) Compare(ctx context.Context, left, right ComparisonSide) (*Comparison, error) {
	l, err := cx.buildSide(ctx, left)
	if err != nil {
		return nil, &SideError{Right: false, Err: err}
	}
	r, err := cx.buildSide(ctx, right)
	if err != nil {
		return nil, &SideError{Right: true, Err: err}
	}
	comparison := &Comparison{
		Left: l.shown, Right: r.shown, Exact: l.shown.Protocol == r.shown.Protocol,
		SharedBytes: commonPrefix(string(l.body), string(r.body)),
	}
	comparison.Parts = aligned(l, r, comparison.Exact)
	return comparison, nil
}

// SideError says which of the two sides of a comparison caused an error.
type SideError struct {
	Right bool
	Err   error
}

func (e *SideError) Error() string { return e.Err.Error() }
func (e *SideError) Unwrap() error { return e.Err }

// buildSide builds one side.
func (cx *Contexts) buildSide(ctx context.Context, side ComparisonSide) (built, error) {
	shown := Compared{
		ConversationID: side.Conversation.ID, Title: cmp.Or(side.Conversation.Title, side.Conversation.Key), Request: side.Request,
	}
	if side.Request != 0 {
		request, err := cx.Request(ctx, side.Conversation, side.Request)
		if err != nil {
			return built{}, err
		}
		round := request.Round
		shown.View, shown.At, shown.Protocol, shown.Model, shown.Usage = round.View, round.At, round.Protocol, round.Model, round.Usage
		return sideOf(shown, request.Body, request.Parts), nil
	}
	seen, err := cx.Build(ctx, side.Conversation, Request{View: side.View, Crew: side.Crew, At: side.At, System: true})
	if err != nil {
		return built{}, err
	}
	shown.View, shown.At = seen.View, seen.Plan.At
	if seen.Messages == nil {
		shown.Protocol = "text"
		return sideOf(shown, []byte(seen.Text), []RequestPart{{Kind: "message", Bytes: int64(len(seen.Text)), Tokens: seen.Plan.Totals.Tokens}}), nil
	}
	shown.Protocol = protocolOf[seen.Format]
	body, err := seen.body()
	return sideOf(shown, body, seen.Parts), err
}

func sideOf(shown Compared, body []byte, parts []RequestPart) built {
	shown.Bytes, shown.Parts = int64(len(body)), len(parts)
	for _, part := range parts {
		shown.Tokens += part.Tokens
	}
	return built{shown, body, parts}
}

// raw are the bytes of a part.
func (b *built) raw(part *RequestPart) []byte { return b.body[part.Offset : part.Offset+part.Bytes] }

// keys are what is compared of the parts: their bytes, or what they say.
func (b *built) keys(exact bool) []string {
	keys := make([]string, len(b.parts))
	for i := range b.parts {
		part := &b.parts[i]
		keys[i] = part.Kind + "\x00" + part.Role + "\x00" + part.Name + "\x00"
		if exact {
			keys[i] += string(b.raw(part))
		} else {
			keys[i] += b.text(part)
		}
	}
	return keys
}

// text is what a part says.
func (b *built) text(part *RequestPart) string {
	raw := b.raw(part)
	if b.shown.Protocol == "text" {
		return string(raw)
	}
	if part.Kind == "tool" {
		var indented bytes.Buffer
		if json.Indent(&indented, raw, "", "  ") == nil {
			return indented.String()
		}
		return string(raw)
	}
	return cmp.Or(partText(raw), string(raw))
}

// aligned are the parts of both sides. What was replaced by a part of the same kind, role and name is one change.
func aligned(left, right built, exact bool) []ComparedPart {
	rows := []ComparedPart{}
	work := linediff.MaxWork
	var removed, inserted []*RequestPart
	flush := func() {
		for len(removed) > 0 && len(inserted) > 0 && isSamePlace(removed[0], inserted[0]) {
			rows = append(rows, changedPart(&left, &right, removed[0], inserted[0], &work))
			removed, inserted = removed[1:], inserted[1:]
		}
		for _, part := range removed {
			rows = append(rows, ComparedPart{Change: PartRemoved, Left: part, Text: beginning(left.text(part), maxComparedText)})
		}
		for _, part := range inserted {
			rows = append(rows, ComparedPart{Change: PartInserted, Right: part, Text: beginning(right.text(part), maxComparedText)})
		}
		removed, inserted = nil, nil
	}
	l, r := 0, 0
	for _, line := range linediff.Tokens(left.keys(exact), right.keys(exact), &work) {
		switch line.Op {
		case linediff.Left:
			removed = append(removed, &left.parts[l])
			l++
		case linediff.Right:
			inserted = append(inserted, &right.parts[r])
			r++
		default:
			flush()
			both := ComparedPart{Change: PartSame, Left: &left.parts[l], Right: &right.parts[r]}
			both.Text = beginning(right.text(both.Right), maxSameText)
			rows = append(rows, both)
			l, r = l+1, r+1
		}
	}
	flush()
	return rows
}

func isSamePlace(left, right *RequestPart) bool {
	return left.Kind == right.Kind && left.Role == right.Role && left.Name == right.Name
}

// changedPart compares the texts of two parts, or their bytes where the texts are equal.
func changedPart(left, right *built, l, r *RequestPart, work *int) ComparedPart {
	before, after := left.text(l), right.text(r)
	if before == after {
		before, after = string(left.raw(l)), string(right.raw(r))
	}
	return ComparedPart{
		Change: PartChanged, Left: l, Right: r,
		Words: linediff.Words(beginning(before, maxComparedText), beginning(after, maxComparedText), work),
	}
}

// beginning is the beginning of a text, of at most so many characters.
func beginning(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	for i := range text {
		if limit--; limit < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// messagePart is what the messages and their parts have in the protocols.
type messagePart struct {
	Type             string          `json:"type"`
	Text             *string         `json:"text"`
	Thinking         string          `json:"thinking"`
	Content          json.RawMessage `json:"content"`
	Parts            json.RawMessage `json:"parts"`
	Output           json.RawMessage `json:"output"`
	Name             string          `json:"name"`
	Input            json.RawMessage `json:"input"`
	Arguments        json.RawMessage `json:"arguments"`
	Function         *calledFunction `json:"function"`
	FunctionCall     *calledFunction `json:"functionCall"`
	FunctionResponse *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// calledFunction is a call in chat completions and in Gemini's protocol.
type calledFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Args      json.RawMessage `json:"args"`
}

func (f *calledFunction) text() string {
	return "calls " + f.Name + " " + partText(f.Arguments) + string(f.Args)
}

// partText is what a message, or a part of one, says in any of the protocols: its texts, calls and results, a line each.
func partText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text) // of a body that was parsed before
		return text
	case '[':
		var elements []json.RawMessage
		_ = json.Unmarshal(raw, &elements)
		texts := make([]string, len(elements))
		for i, element := range elements {
			texts[i] = partText(element)
		}
		return joinTexts(texts...)
	case '{':
		return objectText(raw)
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

func objectText(raw json.RawMessage) string {
	var part messagePart
	if json.Unmarshal(raw, &part) != nil {
		return string(raw)
	}
	texts := []string{part.Thinking, partText(part.Content), partText(part.Parts), partText(part.Output)}
	if part.Text != nil {
		texts = append(texts, *part.Text)
	}
	if part.Name != "" && len(part.Input)+len(part.Arguments) > 0 {
		texts = append(texts, "calls "+part.Name+" "+string(part.Input)+partText(part.Arguments))
	}
	for _, call := range []*calledFunction{part.Function, part.FunctionCall} {
		if call != nil {
			texts = append(texts, call.text())
		}
	}
	if part.FunctionResponse != nil {
		texts = append(texts, string(part.FunctionResponse.Response))
	}
	text := joinTexts(append(texts, partText(part.ToolCalls))...)
	if text == "" && part.Type != "" {
		return "[" + part.Type + "]"
	}
	return text
}

func joinTexts(texts ...string) string {
	var some []string
	for _, text := range texts {
		if text != "" {
			some = append(some, text)
		}
	}
	return strings.Join(some, "\n")
}
