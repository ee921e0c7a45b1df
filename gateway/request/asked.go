package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Asked is what a request asks of the answer, in no protocol's form.
type Asked struct {
	MaxOutputTokens int
	Temperature     *float64
	ReasoningEffort string
	Sampling        continuo.Sampling
	Answer          *Answer // nil for a text
	// Names are the members of the request by the members of continuo.Envelope and continuo.Sampling that have their values.
	Names map[string]string
	// Omitted are the members that only a request in the same protocol can have.
	Omitted []string
}

// Answer is the form of an answer: JSON valid for a schema; any object where there is none.
type Answer struct {
	Name   string
	Schema json.RawMessage
	Strict *bool
}

// member is what becomes of a member of a request in a request that is built.
type member struct {
	// as is the member of continuo.Envelope or continuo.Sampling that has its value; [here] for one that concerns only this
	// server, or that every request has in its own form.
	as string
	// usual is a value that asks for nothing else than its absence does, as compact JSON.
	usual string
	// into returns where the value is read to, and want says what it must be.
	into func(a *Asked) any
	want string
	// read reads a value that into cannot. errNoCounterpart says that only a request in the same protocol can have it.
	read func(a *Asked, value json.RawMessage) error
	// inside says that the member is an object whose members have rows of their own.
	inside bool
}

const here = "here"

// members are the members of a protocol's requests, by their names; those of objects with the object's name before a
// point. A member that has no row can be expressed in no other protocol.
type members map[string]member

// Asked reads what a request asks of the answer. Its error is an *Error.
func (r *Request) Asked() (*Asked, error) {
	a := &Asked{Names: map[string]string{}}
	if err := r.members.read(a, "", r.Fields); err != nil {
		return nil, err
	}
	if len(r.OtherTools) > 0 {
		a.Omitted = append(a.Omitted, "tools of other types than functions")
	}
	return a, nil
}

func (m members) read(a *Asked, within string, fields rawjson.Object) error {
	for _, field := range fields {
		name := within + m.canonical(field.Key)
		row, known := m[name]
		switch value := string(rawjson.MustMarshal(field.Value)); {
		case rawjson.IsNull(field.Value), known && row.usual != "" && row.usual == value, row.as == here && row.read == nil && !row.inside:
			continue
		case !known:
			a.Omitted = append(a.Omitted, within+field.Key)
			continue
		}
		if row.inside {
			inner, err := rawjson.ParseObject(field.Value)
			if err == nil {
				err = m.read(a, name+".", inner)
			} else {
				err = wrong(name, "must be an object, not %s", messages.Kind(field.Value))
			}
			if err != nil {
				return err
			}
			continue
		}
		err := row.value(a, field.Value)
		switch {
		case errors.Is(err, errNoCounterpart):
			a.Omitted = append(a.Omitted, name)
		case err != nil:
			return wrong(name, "%s", err)
		case row.as != here:
			a.Names[row.as] = name
		}
	}
	return nil
}

// value reads the value of a member.
func (m member) value(a *Asked, value json.RawMessage) error {
	if m.read != nil {
		return m.read(a, value)
	}
	if json.Unmarshal(value, m.into(a)) != nil {
		return fmt.Errorf("must be %s, not %s", m.want, messages.Kind(value))
	}
	return nil
}

// canonical is the name of a member as the rows have it: Gemini's API reads snake_case too.
func (m members) canonical(name string) string {
	if _, gemini := m["contents"]; gemini {
		return camel(name)
	}
	return name
}

func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// The rows that several protocols have.
var (
	limitRow       = member{as: "max_output_tokens", want: "a number", into: func(a *Asked) any { return &a.MaxOutputTokens }}
	temperatureRow = member{as: "temperature", want: "a number", into: func(a *Asked) any { return &a.Temperature }}
	topPRow        = member{as: "top_p", want: "a number", into: func(a *Asked) any { return &a.Sampling.TopP }}
	topKRow        = member{as: "top_k", read: readTopK}
	stopRow        = member{as: "stop", read: readStop, usual: "[]"}
	presenceRow    = member{as: "presence_penalty", want: "a number", usual: "0", into: func(a *Asked) any { return &a.Sampling.PresencePenalty }}
	frequencyRow   = member{as: "frequency_penalty", want: "a number", usual: "0", into: func(a *Asked) any { return &a.Sampling.FrequencyPenalty }}
	seedRow        = member{as: "seed", want: "a whole number", into: func(a *Asked) any { return &a.Sampling.Seed }}
	tierRow        = member{as: "service_tier", want: "a string", usual: `"auto"`, into: func(a *Asked) any { return &a.Sampling.ServiceTier }}
	userRow        = member{as: "user", want: "a string", into: func(a *Asked) any { return &a.Sampling.User }}
	cacheKeyRow    = member{as: "cache_key", want: "a string", into: func(a *Asked) any { return &a.Sampling.CacheKey }}
	verbosityRow   = member{as: "verbosity", want: "a string", into: func(a *Asked) any { return &a.Sampling.Verbosity }}
	parallelRow    = member{as: "parallel_tool_calls", want: "true or false", usual: "true", into: func(a *Asked) any { return &a.Sampling.ParallelToolCalls }}
	effortRow      = member{as: "reasoning_effort", read: readEffort}
	hereRow        = member{as: here}
	insideRow      = member{inside: true}
)

func readTopK(a *Asked, value json.RawMessage) error {
	var number float64 // clients write 40.0 too
	if err := json.Unmarshal(value, &number); err != nil || number != float64(int(number)) {
		return fmt.Errorf("must be a whole number, not %s", messages.Kind(value))
	}
	a.Sampling.TopK = new(int(number))
	return nil
}

func readStop(a *Asked, value json.RawMessage) error {
	if text, ok := rawjson.String(value); ok {
		a.Sampling.Stop = []string{text}
		return nil
	}
	if json.Unmarshal(value, &a.Sampling.Stop) != nil {
		return fmt.Errorf("must be a string or a list of strings, not %s", messages.Kind(value))
	}
	return nil
}

// efforts are the values of continuo.Envelope.ReasoningEffort, and the budgets in tokens up to which each of them is
// meant by clients that give a number.
var efforts = []effort{{"none", 0}, {"minimal", 512}, {"low", 1024}, {"medium", 8192}, {"high", 24576}, {"xhigh", math.MaxInt}}

type effort struct {
	name   string
	budget int
}

// effortNames are other names of efforts: Anthropic's greatest, and Gemini's for its own choice.
var effortNames = map[string]string{"max": "xhigh", "thinking_level_unspecified": ""}

func readEffort(a *Asked, value json.RawMessage) error {
	text, ok := rawjson.String(value)
	text = strings.ToLower(text)
	if other, renamed := effortNames[text]; renamed {
		a.ReasoningEffort = other
		return nil
	}
	for _, effort := range efforts {
		if ok && text == effort.name {
			a.ReasoningEffort = text
			return nil
		}
	}
	return fmt.Errorf("must be one of none, minimal, low, medium, high, xhigh, max, not %.100s", value)
}

// readBudget reads how many tokens a model may reason; a negative number leaves it to the model.
func readBudget(a *Asked, value json.RawMessage) error {
	budget := 0
	if json.Unmarshal(value, &budget) != nil {
		return fmt.Errorf("must be a whole number, not %s", messages.Kind(value))
	}
	if budget < 0 {
		return nil
	}
	a.Sampling.ThinkingBudget = &budget
	if a.ReasoningEffort == "" {
		at := slices.IndexFunc(efforts, func(e effort) bool { return budget <= e.budget })
		a.ReasoningEffort = efforts[max(at, 0)].name
	}
	return nil
}

// choose sets the choice of tools.
func (a *Asked) choose(mode string, tools ...string) {
	a.Sampling.ToolChoice = &continuo.ToolChoice{Mode: mode, Tools: tools}
}
