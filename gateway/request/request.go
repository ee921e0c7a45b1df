package request

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Request is a client's request.
type Request struct {
	Model string
	// System are the texts of the system prompt. Of chat completions, they are the system messages before any other.
	System  []string
	Entries []continuo.Entry
	// Messages are the messages of the body, in order, with the leading system messages of chat completions.
	Messages []Message
	// Tools are the functions that the client offers, OtherTools the tools of other types, as they came.
	Tools           []continuo.ToolSpec
	OtherTools      []json.RawMessage
	MaxOutputTokens int // 0: no limit
	Temperature     *float64
	Stream          bool
	// ToolChoice and ResponseFormat are as they came, nil when absent.
	ToolChoice     json.RawMessage
	ResponseFormat json.RawMessage
	// Fields are all members of the body except for the list of messages, as they came.
	Fields rawjson.Object
	// Problems are the rules of the log that the messages break, in order.
	Problems []*Problem

	input   json.RawMessage // the list of messages, where it may be something else
	members members         // of the protocol
}

// Message is where a message is in the body, body[Start:End], and which entries it became: Entries[First:First+Count].
type Message struct {
	Start, End   int
	First, Count int
}

// Options configures the reading of a request.
type Options struct {
	// Provider is the key of vendor data; see continuo.Entry. With an empty one, what entries cannot represent is
	// dropped.
	Provider string
}

// Problem is a rule of the log that a message breaks.
type Problem struct {
	Message int // the position in the list of messages
	Entry   int // the position in Entries
	Rule    continuo.Rule
	Text    string
}

func (p *Problem) Error() string {
	return fmt.Sprintf("messages[%d]: %s: %s", p.Message, p.Rule, p.Text)
}

// Is makes errors.Is match continuo.ErrInvalid.
func (p *Problem) Is(target error) bool { return target == continuo.ErrInvalid }

// Error says why a body cannot be read. Param is the member, such as "messages[2]"; empty for the whole body.
type Error struct {
	Param   string
	Message string
}

func (e *Error) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

// Is makes errors.Is match continuo.ErrInvalid.
func (e *Error) Is(target error) bool { return target == continuo.ErrInvalid }

func wrong(param, format string, args ...any) *Error {
	return &Error{Param: param, Message: fmt.Sprintf(format, args...)}
}

// parse splits a body into its members and the positions of its messages.
func parse(body []byte, list string) (fields rawjson.Object, spans []rawjson.Span, err error) {
	fields, err = rawjson.ParseObject(body)
	if errors.Is(err, rawjson.ErrNotObject) {
		return nil, nil, wrong("", "the body must be a JSON object")
	}
	if err != nil {
		return nil, nil, wrong("", "the body is not valid JSON: %v", err)
	}
	if spans = rawjson.ElementSpans(body, list); spans == nil {
		return nil, nil, wrong(list, "must be a list of messages, not %s", messages.Kind(fields.Get(list)))
	}
	return fields.Without(list), spans, nil
}

// readCommon reads the members that the protocols share.
func (r *Request) readCommon(limits ...string) error {
	steps := []error{
		r.field("model", "a string", &r.Model), r.field("stream", "true or false", &r.Stream),
		r.field("temperature", "a number", &r.Temperature),
	}
	for _, limit := range limits {
		if r.MaxOutputTokens == 0 {
			steps = append(steps, r.field(limit, "a number", &r.MaxOutputTokens))
		}
	}
	r.ToolChoice = r.Fields.Get("tool_choice")
	return errors.Join(steps...)
}

// field reads a member; one that is absent or null does not change the value.
func (r *Request) field(name, want string, value any) error {
	raw := r.Fields.Get(name)
	if rawjson.IsNull(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return wrong(name, "must be %s, not %s", want, messages.Kind(raw))
	}
	return nil
}

// add adds the entries of a message, and the rules that it breaks.
func (r *Request) add(span rawjson.Span, read []*messages.Message) {
	message := Message{Start: span.Start, End: span.End, First: len(r.Entries), Count: len(read)}
	for _, m := range read {
		for _, repair := range m.Repairs {
			if repair.Rule == continuo.RuleNullContent && m.Entry.Role == continuo.System {
				continue // clients send system messages without a text
			}
			r.Problems = append(r.Problems, &Problem{len(r.Messages), len(r.Entries), repair.Rule, repair.Text})
		}
		m.Entry.Hidden = false
		r.Entries = append(r.Entries, m.Entry)
	}
	r.Messages = append(r.Messages, message)
}

// check adds the problems between entries: results without a call, calls without a result.
func (r *Request) check() {
	var group continuo.Group
	for i := range r.Entries {
		err := group.Accept(&r.Entries[i])
		if err == nil {
			continue
		}
		if !r.has(i, err.Rule) {
			r.Problems = append(r.Problems, &Problem{r.messageOf(i), i, err.Rule, err.Message})
		}
		if err.Rule == continuo.RuleUnanswered {
			group = continuo.Group{}
			_ = group.Accept(&r.Entries[i]) // the next problem, if it is one, is reported for the entries after it
		}
	}
	slices.SortStableFunc(r.Problems, func(a, b *Problem) int { return cmp.Compare(a.Entry, b.Entry) })
}

// has reports whether a problem of an entry is known already.
func (r *Request) has(entry int, rule continuo.Rule) bool {
	return slices.ContainsFunc(r.Problems, func(p *Problem) bool { return p.Entry == entry && p.Rule == rule })
}

// messageOf returns the position of the first message of an entry.
func (r *Request) messageOf(entry int) int {
	return slices.IndexFunc(r.Messages, func(m Message) bool { return m.First <= entry && entry < m.First+m.Count })
}
