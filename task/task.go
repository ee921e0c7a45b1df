package task

import (
	"context"
	"time"
)

// Task is delegated work in its stored form.
type Task struct {
	Description string   `json:"description"`
	Priority    Priority `json:"priority" enum:"P0,P1,P2,P3,P4,"` // empty, as the description, where the task was redacted
	ClientCwd   string   `json:"client_cwd,omitempty"`
	// Source names the entries that the history was made from, with both ends; nil when the caller gave the messages.
	Source  *Source `json:"source,omitempty"`
	Context Context `json:"task_context,omitzero"`
}

// Context is what explains a task; it has only what was given.
type Context struct {
	BackgroundContext    string   `json:"background_context,omitempty"`
	ExpectedDeliverables []string `json:"expected_deliverables,omitempty"`
	SuccessCriteria      []string `json:"success_criteria,omitempty"`
	Constraints          []string `json:"constraints,omitempty"`
	RelevantFiles        []string `json:"relevant_files,omitempty"`
	ConversationHistory  *History `json:"conversation_history,omitempty"`
	RelatedDocumentation []string `json:"related_documentation,omitempty"`
}

// IsZero reports whether nothing explains the task.
func (c Context) IsZero() bool {
	return c.BackgroundContext == "" && c.ConversationHistory == nil && len(c.ExpectedDeliverables) == 0 &&
		len(c.SuccessCriteria) == 0 && len(c.Constraints) == 0 && len(c.RelevantFiles) == 0 && len(c.RelatedDocumentation) == 0
}

// Draft is a checked request with its complete history.
type Draft struct {
	// Task has everything except the history.
	Task Task
	// Messages are the history, the oldest first. Where Task.Source is set, Read makes them from those entries.
	Messages []Message
	// Compression and Relevance are the request's values.
	Compression Compression
	Relevance   *float64
	// Progress is called after each summary with the number made and the total, never concurrently. Default: none.
	Progress func(made, total int)

	limits Limits
	now    time.Time
	read   sourceRead
}

// Check checks a request. now replaces missing timestamps. It fails with a *ValidationError.
func Check(request Request, now time.Time, limits Limits) (Draft, []Warning, error) {
	draft := Draft{limits: limits.orDefaults(), now: now, Compression: request.Compression, Relevance: request.Relevance}
	var err error
	if draft.Task, err = request.fields(draft.limits); err != nil {
		return Draft{}, nil, err
	}
	raw := request.ConversationHistory
	if draft.Task.Source, err = sourceOf(raw); err != nil {
		return Draft{}, nil, err
	}
	var warnings []Warning
	draft.Messages, warnings, err = readMessages(raw, request.Relevance != nil, now, draft.limits)
	if err != nil {
		return Draft{}, nil, err
	}
	return draft, warnings, nil
}

// Shape makes the task, with its history reduced to the limits. summarizer makes the summaries if the request asks for
// them (nil: [Extractive]); where it fails, Extractive makes the summary and a warning says so. The only error is that
// of a context that is done.
func (d *Draft) Shape(ctx context.Context, summarizer Summarizer) (Task, []Warning, error) {
	messages, gaps, warnings := d.selectMessages()
	s := shaper{limits: d.limits.orDefaults(), summarizer: summarizer, progress: d.Progress}
	if d.Compression == Semantic && summarizer == nil {
		s.summarizer = Extractive{}
	} else if d.Compression != Semantic {
		s.summarizer = nil
	}
	task := d.Task
	if len(messages) > 0 {
		history, err := s.history(ctx, messages, d.now)
		if err != nil {
			return Task{}, nil, err
		}
		history.Gaps = gaps
		task.Context.ConversationHistory = history
	}
	warnings = append(append(warnings, s.warnings...), s.fitTokens(&task, messages)...)
	return task, warnings, nil
}

// selectMessages returns the messages that the history keeps, and where it drops some because of low relevance.
func (d *Draft) selectMessages() (messages []Message, gaps []Gap, warnings []Warning) {
	most := d.limits.orDefaults().MaxMessages
	warnings = d.read.warnings(most)
	if d.Relevance != nil {
		found := relevant(d.Messages, d.Task.Description, *d.Relevance, most)
		return found.kept, found.gaps, append(warnings, found.warnings(len(d.Messages), most)...)
	}
	messages = d.Messages
	if len(messages) > most {
		if !d.read.more {
			warnings = append(warnings, tooManyMessages(len(messages), most))
		}
		messages = messages[len(messages)-most:]
	}
	return messages, nil, warnings
}

// Validate is Check and Shape for requests without other services: messages that are too long are truncated, or
// summarized by Extractive. A task whose history is a conversation of the log has its Source and no history.
func Validate(request Request, now time.Time, limits Limits) (*Task, []Warning, error) {
	draft, warnings, err := Check(request, now, limits)
	if err != nil {
		return nil, nil, err
	}
	task, more, err := draft.Shape(context.Background(), nil)
	if err != nil {
		return nil, nil, err
	}
	return &task, append(warnings, more...), nil
}
