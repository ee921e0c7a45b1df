package task

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/token"
)

// Priority says how urgent a task is.
type Priority string

// The priorities, the most urgent first.
const (
	P0 Priority = "P0"
	P1 Priority = "P1"
	P2 Priority = "P2" // the default
	P3 Priority = "P3"
	P4 Priority = "P4"
)

// Compression is how messages that are longer than their limit are shortened.
type Compression string

// The compressions: the beginning of a message, or a summary of it.
const (
	Truncate Compression = "truncate" // the default
	Semantic Compression = "semantic"
)

// Request is a request for a task, before validation.
type Request struct {
	// The work to be done, for a reader who does not know the conversation that led to it.
	Description string `json:"description" maxLength:"32000" doc:"minLength=1"`
	// How urgent the task is; P0 is the most urgent.
	Priority Priority `json:"priority,omitempty" default:"P2"`
	// The absolute path of the folder that the work is about. It is only text of the prompt: the setting connectors.NAME.dir
	// defines where an agent's process runs.
	ClientCwd string `json:"client_cwd,omitempty" maxLength:"32000"`
	// What an agent has to know in order to understand the task.
	BackgroundContext string `json:"background_context,omitempty" maxLength:"32000"`
	// The results that the task must have.
	ExpectedDeliverables []string `json:"expected_deliverables,omitempty" doc:"maxItems=200"`
	// How to decide that the work is done.
	SuccessCriteria []string `json:"success_criteria,omitempty" doc:"maxItems=200"`
	// What an agent must not do, or must do only in a certain way.
	Constraints []string `json:"constraints,omitempty" doc:"maxItems=200"`
	// The paths of files that matter.
	RelevantFiles []string `json:"relevant_files,omitempty" doc:"maxItems=200"`
	// Documents and addresses that are worth reading.
	RelatedDocumentation []string `json:"related_documentation,omitempty" doc:"maxItems=200"`
	// The conversation that led to the task: its messages, the oldest first; or the id or key of a conversation of the log,
	// alone or with the `seq` of its first and of its last entry. By default the newest 50 messages are kept; user messages of
	// up to 8000 characters and others of up to 150 are kept whole.
	ConversationHistory json.RawMessage `json:"conversation_history,omitempty" component:"TaskConversation"`
	// How messages that are too long are shortened: only the beginning is kept, or they are summarized.
	Compression Compression `json:"compression,omitempty" default:"truncate"`
	// Messages that are less relevant to the description are left out. If too many remain, the most relevant of them are kept,
	// not the newest. The default is that relevance does not matter.
	Relevance *float64 `json:"relevance,omitempty" minimum:"0" maximum:"1"`
}

// Parse reads a request from a JSON object with the names of the tool create_real_task; limits bound its size. Unknown
// fields are ignored. It fails with a *ValidationError.
func Parse(data []byte, limits Limits) (Request, error) {
	limits = limits.orDefaults()
	if len(data) > limits.MaxBytes {
		return Request{}, refuse(InvalidValue, "", "the request has %d bytes, at most %d are allowed", len(data), limits.MaxBytes)
	}
	object, err := rawjson.ParseObject(data)
	if errors.Is(err, rawjson.ErrNotObject) {
		return Request{}, refuse(TypeError, "", "the request must be a dict, got %s", kindOf(data))
	}
	if err != nil {
		return Request{}, refuse(TypeError, "", "the request must be a dict, but it is no JSON: %s", oneLine(err.Error(), 200))
	}
	r := fieldReader{object: object}
	request := Request{
		Description:          r.text("description"),
		Priority:             Priority(r.text("priority")),
		ClientCwd:            r.text("client_cwd"),
		BackgroundContext:    r.text("background_context"),
		ExpectedDeliverables: r.list("expected_deliverables"),
		SuccessCriteria:      r.list("success_criteria"),
		Constraints:          r.list("constraints"),
		RelevantFiles:        r.list("relevant_files"),
		RelatedDocumentation: r.list("related_documentation"),
		ConversationHistory:  object.Get(historyField),
		Compression:          Compression(r.text("compression")),
		Relevance:            r.number("relevance"),
	}
	if r.err != nil {
		return Request{}, r.err
	}
	return request, nil
}

// fieldReader reads fields of an object and keeps the first error. Absent and null are the zero value.
type fieldReader struct {
	object rawjson.Object
	err    *ValidationError
}

func (r *fieldReader) fail(e *ValidationError) {
	if r.err == nil {
		r.err = e
	}
}

func (r *fieldReader) text(name string) string {
	value := r.object.Get(name)
	text, ok := rawjson.String(value)
	if !ok && !rawjson.IsNull(value) {
		r.fail(refuse(TypeError, name, "%s must be a string, got %s", name, kindOf(value)))
	}
	return text
}

func (r *fieldReader) list(name string) []string {
	value := r.object.Get(name)
	if rawjson.IsNull(value) {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		r.fail(refuse(TypeError, name, "%s must be a list of strings, got %s", name, kindOf(value)))
		return nil
	}
	texts := make([]string, 0, len(items))
	for i, item := range items {
		text, ok := rawjson.String(item)
		if !ok {
			r.fail(refuseAt(i, TypeError, name, "%s at index %d must be a string, got %s", name, i, kindOf(item)))
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

func (r *fieldReader) number(name string) *float64 {
	value := r.object.Get(name)
	if rawjson.IsNull(value) {
		return nil
	}
	var number float64
	if json.Unmarshal(value, &number) != nil {
		r.fail(refuse(TypeError, name, "%s must be a number, got %s", name, kindOf(value)))
	}
	return &number
}

// fields checks all of a request except its history.
func (r *Request) fields(limits Limits) (Task, error) {
	c := fieldChecker{limits: limits}
	task := Task{
		Description: c.text("description", r.Description),
		Priority:    oneOf(&c, "priority", r.Priority, P2, P0, P1, P2, P3, P4),
		ClientCwd:   c.text("client_cwd", r.ClientCwd),
		Context: Context{
			BackgroundContext:    c.text("background_context", r.BackgroundContext),
			ExpectedDeliverables: c.list("expected_deliverables", r.ExpectedDeliverables),
			SuccessCriteria:      c.list("success_criteria", r.SuccessCriteria),
			Constraints:          c.list("constraints", r.Constraints),
			RelevantFiles:        c.list("relevant_files", r.RelevantFiles),
			RelatedDocumentation: c.list("related_documentation", r.RelatedDocumentation),
		},
	}
	oneOf(&c, "compression", r.Compression, Truncate, Truncate, Semantic)
	if c.err == nil && strings.TrimSpace(task.Description) == "" {
		c.err = refuse(MissingField, "description", "missing required field 'description'")
	}
	if cutoff := r.Relevance; c.err == nil && cutoff != nil && !(*cutoff >= 0 && *cutoff <= 1) {
		c.err = refuse(InvalidValue, "relevance", "relevance must be a number from 0 to 1")
	}
	if tokens := c.tokens(&task); c.err == nil && tokens > limits.MaxTokens {
		c.err = refuse(InvalidValue, "", "the task has about %d tokens without its history, at most %d are allowed: shorten background_context or the lists, or name files", tokens, limits.MaxTokens)
	}
	if c.err != nil {
		return Task{}, c.err
	}
	return task, nil
}

// tokens counts the tokens of a task's prompt without a history. A text has at most as many tokens as bytes: a short
// prompt is not counted.
func (c *fieldChecker) tokens(task *Task) int {
	prompt := Prompt(*task)
	if len(prompt) <= c.limits.MaxTokens {
		return len(prompt)
	}
	return token.O200k().Count(prompt)
}

// fieldChecker bounds texts and keeps the first error.
type fieldChecker struct {
	limits Limits
	err    *ValidationError
}

func (c *fieldChecker) text(name, text string) string {
	if chars := utf8.RuneCountInString(text); chars > c.limits.MaxFieldChars && c.err == nil {
		c.err = refuse(InvalidValue, name, "%s has %d characters, at most %d are allowed", name, chars, c.limits.MaxFieldChars)
	}
	return clean(text)
}

// list drops blank items.
func (c *fieldChecker) list(name string, items []string) []string {
	if len(items) > c.limits.MaxItems && c.err == nil {
		c.err = refuse(InvalidValue, name, "%s has %d items, at most %d are allowed", name, len(items), c.limits.MaxItems)
		return nil
	}
	var kept []string
	for i, item := range items {
		chars := utf8.RuneCountInString(item)
		if chars > c.limits.MaxFieldChars && c.err == nil {
			c.err = refuseAt(i, InvalidValue, name, "%s at index %d has %d characters, at most %d are allowed", name, i, chars, c.limits.MaxFieldChars)
		}
		if strings.TrimSpace(item) != "" {
			kept = append(kept, clean(item))
		}
	}
	return kept
}

// oneOf checks a value against a few; missing is the default of the empty one.
func oneOf[T ~string](c *fieldChecker, name string, value, missing T, allowed ...T) T {
	if value == "" {
		return missing
	}
	if !slices.Contains(allowed, value) && c.err == nil {
		var names []string
		for _, one := range allowed {
			names = append(names, string(one))
		}
		c.err = refuse(InvalidValue, name, "invalid %s '%s', must be %s", name, oneLine(string(value), 80), strings.Join(names, "|"))
	}
	return value
}
