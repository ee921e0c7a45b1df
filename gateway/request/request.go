package request

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	// Problems are the rules of the log that the messages break, in order. Entries are repaired: the log takes them.
	Problems []*Problem
	// Open are the ids of the last calls that have no result.
	Open []string
	// List is the name of the list of messages, as the protocol has it.
	List string

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
	Entry   int // the position in Entries, which have a result for each call
	Rule    continuo.Rule
	Text    string
	// Refused says that the log refuses the entry. Of others, what breaks the rule is left out.
	Refused bool
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
	fields, err = rawjson.ParseObjectExcept(body, list)
	if errors.Is(err, rawjson.ErrNotObject) {
		return nil, nil, wrong("", "the body must be a JSON object")
	}
	if err != nil {
		return nil, nil, wrong("", "the body is not valid JSON: %v", err)
	}
	if spans = rawjson.ElementSpans(body, list); spans == nil {
		whole, _ := rawjson.ParseValidObject(body)
		return nil, nil, wrong(list, "must be a list of messages, not %s", messages.Kind(whole.Get(list)))
	}
	return fields, spans, nil
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

// reserve makes room for so many messages.
func (r *Request) reserve(count int) {
	r.Messages, r.Entries = slices.Grow(r.Messages, count), slices.Grow(r.Entries, count)
}

func messageParam(i int) string { return fmt.Sprintf("messages[%d]", i) }

// add adds the entries of a message, and the rules that it breaks.
func (r *Request) add(span rawjson.Span, read []*messages.Message) {
	message := Message{Start: span.Start, End: span.End, First: len(r.Entries), Count: len(read)}
	for _, m := range read {
		for _, repair := range m.Repairs {
			if repair.Rule == continuo.RuleNullContent && m.Entry.Role == continuo.System {
				continue // clients send system messages without a text
			}
			r.Problems = append(r.Problems, &Problem{Message: len(r.Messages), Entry: len(r.Entries), Rule: repair.Rule, Text: repair.Text})
		}
		m.Entry.Hidden = false
		r.Entries = append(r.Entries, m.Entry)
	}
	r.Messages = append(r.Messages, message)
}

// check adds the problems between entries: results without a call, calls without a result. Then it repairs the entries.
func (r *Request) check() {
	var group continuo.Group
	for i := range r.Entries {
		err := group.Accept(&r.Entries[i])
		if err == nil {
			continue
		}
		if err.Rule == continuo.RuleUnanswered {
			err.Message = missingResults(group.Open)
			group = continuo.Group{}
			_ = group.Accept(&r.Entries[i]) // the next problem, if it is one, is reported for the entries after it
		}
		known := r.problem(i, err.Rule)
		if known == nil {
			known = &Problem{Message: r.messageOf(i), Entry: i, Rule: err.Rule, Text: err.Message}
			r.Problems = append(r.Problems, known)
		}
		known.Refused = true
	}
	slices.SortStableFunc(r.Problems, func(a, b *Problem) int { return cmp.Compare(a.Entry, b.Entry) })
	r.Open = group.Open
	r.repair()
}

// missingResults says that calls have no result.
func missingResults(open []string) string {
	return fmt.Sprintf("there is no result of the calls %s: send the results of all calls of an answer behind it", strings.Join(open, ", "))
}

// Refusal is why a request cannot be built from the messages; nil where it can.
func (r *Request) Refusal() *Error {
	for _, problem := range r.Problems {
		param := fmt.Sprintf("%s[%d]", r.List, problem.Message)
		switch {
		case problem.Rule == continuo.RuleUnknownRole:
			return wrong(param+".role", "%s has a role that this endpoint does not have", param)
		case problem.Refused && problem.Rule != continuo.RuleDuplicateAnswer && !r.isLeading(problem):
			return wrong(param, "%s: %s", param, problem.Text)
		}
	}
	if len(r.Open) > 0 {
		param := fmt.Sprintf("%s[%d]", r.List, len(r.Messages)-1)
		return wrong(param, "%s: %s", param, missingResults(r.Open))
	}
	return nil
}

// isLeading reports whether a problem is a result at the beginning: the log may have its call.
func (r *Request) isLeading(problem *Problem) bool {
	return problem.Rule == continuo.RuleOrphanTool && !slices.ContainsFunc(r.Entries[:problem.Entry], func(e continuo.Entry) bool { return e.Role != continuo.Tool })
}

// problem returns the problem of an entry that is known already; nil for none.
func (r *Request) problem(entry int, rule continuo.Rule) *Problem {
	for _, p := range r.Problems {
		if p.Entry == entry && p.Rule == rule {
			return p
		}
	}
	return nil
}

// messageOf returns the position of the first message of an entry.
func (r *Request) messageOf(entry int) int {
	return slices.IndexFunc(r.Messages, func(m Message) bool { return m.First <= entry && entry < m.First+m.Count })
}
