// Package memory gives models three tools over the memory of the user whose conversation it is: memory.recall,
// memory.remember and memory.forget. A fact that a model adds needs a quote, which must stand word for word in the
// conversation: a model can remember what was said, and nothing else.
package memory

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// Fact is a fact as a model is shown it.
type Fact struct {
	ID        int64
	Kind      string
	Text      string
	Said      string // the day
	Until     string // the last day, if it was stated with an end
	Contested bool   // another fact contradicts it
}

// Memory is the memory of the user of a conversation.
type Memory interface {
	Recall(ctx context.Context, conversation continuo.Conversation, query string) ([]Fact, error)
	Remember(ctx context.Context, conversation continuo.Conversation, statement Statement) (Fact, error)
	Forget(ctx context.Context, conversation continuo.Conversation, id int64) error
}

// Statement is what a model remembers.
type Statement struct {
	Text  string `json:"text"`
	Quote string `json:"quote"`
	Kind  string `json:"kind,omitempty"`
}

// Tools returns the tools over a memory, which is asked for at each call.
func Tools(memory func() Memory) tool.Set {
	return tool.Set{recall{memory}, remember{memory}, forget{memory}}
}

type (
	recall   struct{ memory func() Memory }
	remember struct{ memory func() Memory }
	forget   struct{ memory func() Memory }
)

//go:embed recall.md
var recallText string

//go:embed remember.md
var rememberText string

//go:embed forget.md
var forgetText string

func spec(name, description, properties, required string) continuo.ToolSpec {
	return continuo.ToolSpec{
		Name: name, Description: strings.TrimSpace(description),
		Parameters: json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`),
	}
}

// Spec describes the tool to a model.
func (recall) Spec() continuo.ToolSpec {
	return spec("memory.recall", recallText, `"query":{"type":"string","minLength":1,"description":"What the facts have to do with"}`, `"query"`)
}

// Spec describes the tool to a model.
func (remember) Spec() continuo.ToolSpec {
	return spec("memory.remember", rememberText, `"text":{"type":"string","minLength":1,"maxLength":2000,"description":"The fact, in one sentence"},"quote":{"type":"string","minLength":1,"description":"The words of the conversation that say so, exactly as they stand there"},"kind":{"type":"string","enum":["identity","preference","instruction","decision","event","relation","other"]}`, `"text","quote"`)
}

// Spec describes the tool to a model.
func (forget) Spec() continuo.ToolSpec {
	return spec("memory.forget", forgetText, `"id":{"type":"integer","minimum":1,"description":"The number of the fact, as memory.recall shows it"}`, `"id"`)
}

// Repeatable is part of tool.Repeatable.
func (recall) Repeatable() bool { return true }

// Run lists facts.
func (t recall) Run(ctx context.Context, call tool.Call) tool.Result {
	var in struct{ Query string }
	if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil || strings.TrimSpace(in.Query) == "" {
		return tool.Failure("memory.recall: give a query")
	}
	facts, err := t.memory().Recall(ctx, call.Conversation, in.Query)
	if err != nil {
		return tool.Failure("memory.recall: %v", err)
	}
	lines := []string{}
	for _, fact := range facts {
		lines = append(lines, fact.line())
	}
	if len(lines) == 0 {
		return tool.Result{Outcome: "Found no fact", Content: "nothing is known of that"}
	}
	return tool.Result{Outcome: fmt.Sprintf("Found %d facts", len(lines)), Content: strings.Join(lines, "\n")}
}

// line is a fact on one line.
func (f *Fact) line() string {
	contested := ""
	if f.Contested {
		contested = ", contradicted by another statement"
	}
	until := ""
	if f.Until != "" {
		until = ", until " + f.Until
	}
	return fmt.Sprintf("%d [%s, said %s%s%s] %s", f.ID, f.Kind, f.Said, until, contested, strings.Join(strings.Fields(f.Text), " "))
}

// Run adds a fact.
func (t remember) Run(ctx context.Context, call tool.Call) tool.Result {
	var in Statement
	if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil || strings.TrimSpace(in.Text) == "" || strings.TrimSpace(in.Quote) == "" {
		return tool.Failure("memory.remember: give text, and the quote that says so")
	}
	fact, err := t.memory().Remember(ctx, call.Conversation, in)
	if err != nil {
		return tool.Failure("memory.remember: %v", err)
	}
	return tool.Result{Outcome: fmt.Sprintf("Remembered fact %d", fact.ID), Content: fact.line()}
}

// Run forgets a fact.
func (t forget) Run(ctx context.Context, call tool.Call) tool.Result {
	var in struct{ ID int64 }
	if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil || in.ID < 1 {
		return tool.Failure("memory.forget: give the id of a fact")
	}
	if err := t.memory().Forget(ctx, call.Conversation, in.ID); err != nil {
		return tool.Failure("memory.forget: %v", err)
	}
	outcome := fmt.Sprintf("Forgot fact %d", in.ID)
	return tool.Result{Outcome: outcome, Content: outcome}
}
