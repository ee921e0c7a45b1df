package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// replyStep answers for a step of a workflow.
func (r *request) replyStep() (text string, calls []call) {
	if rest := r.rest(); rest != "" {
		return rest, nil
	}
	tried := r.tried()
	calls, unknown := r.callsIn(r.step.brief)
	if len(calls) > 0 && len(tried.results) == 0 {
		return r.step.mark() + "As its brief asks, I call " + names(calls) + ".", calls
	}
	parts := []string{introduction, r.count()}
	if unknown != "" {
		parts = append(parts, r.refuse(unknown))
	}
	parts = append(parts, "Inputs: "+namesShown(r.step.inputs)+". Outputs of earlier steps: "+namesShown(r.step.earlier)+".")
	for i, result := range tried.results {
		parts = append(parts, describeResult(result, tried.names[i]))
	}
	if tried.refused > 0 {
		users := r.users()
		parts = append(parts, fmt.Sprintf("I was told of my answer before: %s So I answer as I would %s later.",
			quote(users[len(users)-1], maxQuote), plural(tried.refused, "visit")))
	}
	sources := r.step.sources(tried)
	if len(r.step.outputs) == 0 {
		parts = append(parts, "The newest that I was shown: "+sources[0].quote())
	}
	return r.step.mark() + strings.Join(parts, " ") + r.step.block(r.step.visit+tried.refused, sources), nil
}

// failureCode follows the text of an interrupted answer.
const failureCode = "\n\nLLM_ERROR"

// rest is the rest of the last interrupted answer: that of the answer to the same request without it. It is
// empty without an interrupted answer, or if the answer cannot be continued.
func (r *request) rest() string {
	last := len(r.messages) - 1
	for last >= 0 && r.messages[last].role == "user" {
		last--
	}
	if last < 0 || r.messages[last].role != "assistant" {
		return ""
	}
	at := strings.LastIndex(r.messages[last].text, failureCode)
	if at < 0 {
		return ""
	}
	before := *r
	before.messages = r.messages[:last]
	whole, calls := before.replyStep()
	rest, continues := strings.CutPrefix(whole, r.messages[last].text[:at])
	if !continues || len(calls) > 0 {
		return ""
	}
	return rest
}

// mark is the beginning of all answers in one visit of the step, by which the model recognises its own
// answers.
func (s *step) mark() string {
	return fmt.Sprintf("Step %s, visit %d, of %s: ", s.name, s.visit, s.run)
}

// tried is what the model did earlier in a visit.
type tried struct {
	results []message
	names   []string // of the tools, one for each result
	refused int      // complete answers that were refused
}

// tried reads this visit's part of the history. Calls without text that follow the model's own were repeated
// by the program. Results at the end of the request count, whichever made the calls.
func (r *request) tried() tried {
	var found tried
	asked, continues := map[string]string{}, false
	for _, message := range r.messages {
		again := len(asked) > 0 && message.text == "" && len(message.calls) > 0
		switch own := continues || again || strings.HasPrefix(message.text, r.step.mark()); {
		case message.role == "tool" && asked[message.callID] != "":
			found.results, found.names = append(found.results, message), append(found.names, asked[message.callID])
		case message.role != "assistant" || !own:
		case len(message.calls) > 0:
			asked, continues = message.calls, false
			found.results, found.names = nil, nil
		default:
			if continues = strings.Contains(message.text, failureCode); !continues {
				found.refused++
			}
		}
	}
	if results, names := r.results(); len(results) > 0 {
		found.results, found.names = results, names
	}
	return found
}

func namesShown(list []shown) string {
	if len(list) == 0 {
		return "none"
	}
	var all []string
	for _, one := range list {
		all = append(all, one.name)
	}
	return strings.Join(all, ", ")
}

// sources lists what outputs can be derived from, at least one: results, the newest first, inputs that an
// earlier step gave, the outputs of earlier steps, the newest first, the other inputs, the brief.
func (s *step) sources(tried tried) []shown {
	var list, others []shown
	for i, result := range tried.results {
		list = append(list, shown{name: tried.names[i], text: result.text})
	}
	slices.Reverse(list)
	for _, input := range s.inputs {
		if s.isGiven(input) {
			list = append(list, input)
		} else {
			others = append(others, input)
		}
	}
	for _, earlier := range slices.Backward(s.earlier) {
		if id, _, _ := strings.Cut(s.name, " "); earlier.name != id { // not of the step's own earlier visits
			list = append(list, earlier)
		}
	}
	return append(append(list, others...), shown{name: "the brief", text: s.brief})
}

// isGiven reports whether an input repeats an output of an earlier step.
func (s *step) isGiven(input shown) bool {
	text := string(rawjson.MustMarshal(input.text))
	return strings.Contains(input.raw, text) && slices.ContainsFunc(s.earlier, func(earlier shown) bool { return strings.Contains(earlier.raw, text) })
}

// made separates a name and a quotation in the sentences that are made up for outputs.
const made = ", made up by the demo model of "

// quote repeats the value. Of a made-up sentence it repeats only the quotation, so that sentences do not
// nest.
func (s shown) quote() string {
	text := s.text
	if _, rest, ok := strings.Cut(text, made); ok {
		if from, to := strings.Index(rest, "“"), strings.LastIndex(rest, "”"); from >= 0 && to > from {
			text = rest[from+len("“") : to]
		}
	}
	return quote(strings.ReplaceAll(text, "`", "'"), maxQuote)
}

// block writes the outputs as the fenced object that ends a step's answer; empty when none are requested.
func (s *step) block(count int, sources []shown) string {
	if len(s.outputs) == 0 {
		return ""
	}
	lines := make([]string, len(s.outputs))
	for i, field := range s.outputs {
		lines[i] = "  " + string(rawjson.MustMarshal(field.name)) + ": " + string(rawjson.MustMarshal(field.value(count, sources)))
	}
	return "\n\n```json\n{\n" + strings.Join(lines, ",\n") + "\n}\n```"
}

// value makes up a value. Count is the number of the visit, plus one for each refused answer in it.
func (f field) value(count int, sources []shown) any {
	sentence := func(i int) string { return f.name + made + sources[i].name + ": " + sources[i].quote() }
	switch f.kind {
	case "number", "integer":
		return count
	case "boolean":
		return count > 1
	case "array":
		list := []string{sentence(0)}
		if len(sources) > 2 { // more sources than the brief and one other
			list = append(list, sentence(1))
		}
		return list
	case "object":
		return map[string]any{"count": count, "text": sentence(0)}
	}
	switch {
	case len(f.enum) == 0:
		return sentence(0)
	case count == 1:
		return f.enum[0]
	default:
		return f.enum[len(f.enum)-1]
	}
}

// firstString finds the first string in a decoded JSON value, in an object by the order of its keys.
func firstString(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		for _, item := range value {
			if text := firstString(item); text != "" {
				return text
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if text := firstString(value[key]); text != "" {
				return text
			}
		}
	}
	return ""
}
