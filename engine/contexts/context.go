package contexts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/recalls"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Format is a wire format in which a context can be rendered.
type Format string

// The formats.
const (
	FormatOpenAI     Format = "openai"
	FormatAnthropic  Format = "anthropic"
	FormatTranscript Format = "transcript"
)

// Contexts builds what the reader of a conversation sees, and rebuilds what one has seen.
type Contexts struct {
	log     *continuo.Log
	catalog *catalog.Catalog
	recalls *recalls.Recalls
	readers Readers
}

// Readers resolve the readers that are roles of crews and steps of runs.
type Readers struct {
	Role func(ctx context.Context, conversation continuo.Conversation, crewID, role string, at int64) (catalog.ResolvedTurn, error)
	Step func(ctx context.Context, conversation continuo.Conversation, request Request, at int64) (catalog.ResolvedTurn, error)
}

func New(log *continuo.Log, catalog *catalog.Catalog, recalls *recalls.Recalls) *Contexts {
	return &Contexts{log: log, catalog: catalog, recalls: recalls}
}

// SetReaders sets the readers, which are made after the Contexts that they use.
func (cx *Contexts) SetReaders(resolve Readers) { cx.readers = resolve }

// RoleViewPrefix is the prefix of a role's name in the name of its view.
const RoleViewPrefix = "role:"

// Request selects the context to build: what a reader of a conversation sees.
type Request struct {
	// View is a preset's name. Default: the agent's, else UsualView.
	View string
	// UsualView is the view where neither the request nor the agent names one. Default: continuity in the mode chat,
	// codex in the others.
	UsualView string
	// Format is the rendering. Default: transcript for the replay view, handoff for the handoff view, openai for the others.
	Format Format
	// Query is the next message: the context is that of the request that it would get, with what a turn would recall for it. In
	// the view recall it is what entries are recalled for; default: the newest message of a user. Nothing is appended.
	Query string
	// Scope is where the view recall looks. Default: the conversation.
	Scope lookup.Scope
	// Passages shows passages of long entries in the view recall, so that more entries fit. Default: entries are shown whole.
	Passages bool
	// At is the newest seq to consider. Default 0: the newest of the log.
	At int64
	// MaxMessages, MaxChars and MaxTokens replace the view's limits; nil keeps them, 0 removes them.
	MaxMessages, MaxChars, MaxTokens *int
	// Model names the model that would read the context; its tokenizer counts. Default: the agent's, else the default
	// model.
	Model string
	// AgentID names the agent that would answer. Default: the conversation's active agent, where its mode has one.
	AgentID string
	// System adds the system messages of the conversation's mode, of the role, or of the run's step.
	System bool
	// RunID names a run of the conversation. The reader is the run's next step or the step in progress; for a failed or
	// stopped run, the step that a resume would begin. The step determines the agent and the model: AgentID and Model
	// are ignored.
	RunID string
	// Crew is the id of the crew of the view role:NAME. Default: the crew with the newest cycle at that seq.
	Crew string
}

// Context is what a reader of a conversation sees.
type Context struct {
	View     string            `json:"view"`
	Format   Format            `json:"format"`
	Messages []json.RawMessage `json:"messages,omitzero"` // in the formats of models
	// Tools are the tools that the model is offered with the messages, by the names that requests have; with `system`, in the formats of models.
	Tools []continuo.ToolSpec `json:"tools,omitempty"`
	// Parts are the parts of an object that has `messages` and then `tools`, as they are here, without spaces; with `system`, in
	// the formats of models. Their tokens add up to those of the plan and of its prompt.
	Parts []RequestPart `json:"parts,omitempty"`
	Text  string        `json:"text,omitempty"` // in the formats of text
	Plan  *window.Plan  `json:"plan"`           // for each entry whether it is kept, shortened or left out, and why; and totals
}

// Build builds what a reader sees. It calls no model and changes nothing.
func (cx *Contexts) Build(ctx context.Context, conversation continuo.Conversation, request Request) (*Context, error) {
	if err := checkQuery(request); err != nil {
		return nil, err
	}
	at, err := CheckSeq(conversation, request.At)
	if err != nil {
		return nil, err
	}
	chosen, err := cx.chooseReader(ctx, conversation, request, at)
	if err != nil {
		return nil, err
	}
	view, err := limited(chosen.View, request)
	if err != nil {
		return nil, err
	}
	info := chosen.Upstream.Model.Info()
	format := cmp.Or(request.Format, usualFormat(view.Name))
	plan, envelope, err := cx.plan(ctx, conversation, at, view, chosen, format, request)
	if err != nil {
		return nil, err
	}
	result := &Context{View: view.Name, Format: format, Plan: plan}
	envelope.System = plan.System(envelope.System)
	if !request.System {
		envelope.System = nil
	}
	if result.Format == FormatHandoff {
		err = cx.renderHandoff(ctx, conversation, envelope, result)
	} else {
		err = result.render(ctx, cx.log, envelope, info)
	}
	if err != nil {
		return nil, err
	}
	history := result.Messages
	if result.Format == FormatOpenAI {
		history = history[len(envelope.System):]
		if result.Messages, err = render.Arrange(result.Messages, envelope.Roles); err != nil {
			return nil, err
		}
	}
	plan.Totals.SharedBytes = cx.sharedBytes(ctx, conversation, plan, &Context{Format: result.Format, Messages: history}, info)
	if request.System && result.Messages != nil {
		if err := result.addParts(envelope); err != nil {
			return nil, err
		}
	}
	return result, cx.measureUnread(ctx, conversation, plan)
}

// formatted is a model with the [model.Info] of another wire format.
type formatted struct {
	model.Model
	info model.Info
}

// Info is part of [model.Model].
func (f formatted) Info() model.Info { return f.info }

// protocolOf is the protocol of a format that is one.
var protocolOf = map[Format]string{FormatAnthropic: model.ProtocolAnthropic, FormatOpenAI: model.ProtocolOpenAIChat}

// inFormat is a model's info in a format: what the rendering adds to the messages counts.
func inFormat(info model.Info, format Format) model.Info {
	if protocol, ok := protocolOf[format]; ok && info.TakesMessages() {
		info.Protocol = protocol
	}
	return info
}

// usualFormat is the default format of a view.
func usualFormat(view string) Format {
	switch view {
	case window.Replay:
		return FormatTranscript
	case task.HandoffView:
		return FormatHandoff
	}
	return FormatOpenAI
}

// chooseReader resolves the reader: a role of a crew, or the agent and model that would answer the next message.
func (cx *Contexts) chooseReader(ctx context.Context, conversation continuo.Conversation, request Request, at int64) (catalog.ResolvedTurn, error) {
	if role, ok := strings.CutPrefix(request.View, RoleViewPrefix); ok {
		return cx.readers.Role(ctx, conversation, request.Crew, role, at)
	}
	if request.RunID != "" {
		return cx.readers.Step(ctx, conversation, request, at)
	}
	mode, agent := catalog.ModeAndAgent(conversation, "", request.AgentID)
	return cx.catalog.Resolve(catalog.TurnSpec{Mode: mode, Agent: agent, Model: request.Model, ViewName: request.View, UsualView: request.UsualView})
}

// limited is a view with the limits of a request.
func limited(view window.View, request Request) (window.View, error) {
	for _, limit := range []struct {
		name string
		from *int
		to   *int
	}{
		{"max_messages", request.MaxMessages, &view.Limits.Messages},
		{"max_chars", request.MaxChars, &view.Limits.Chars},
		{"max_tokens", request.MaxTokens, &view.Limits.Tokens},
	} {
		if limit.from == nil {
			continue
		}
		if *limit.from < 0 {
			return window.View{}, fmt.Errorf("%s %d: %w: give 0 for no limit or a positive number", limit.name, *limit.from, continuo.ErrInvalid)
		}
		*limit.to = *limit.from
	}
	view.FollowWindow = view.FollowWindow && request.MaxTokens == nil
	return view, nil
}

// CheckSeq checks that a seq is one of a conversation; 0 becomes the newest.
func CheckSeq(conversation continuo.Conversation, at int64) (int64, error) {
	if at == 0 {
		return conversation.LastSeq, nil
	}
	if at < 0 || at > conversation.LastSeq {
		return 0, fmt.Errorf("at %d: %w: the conversation has entries 1 to %d", at, continuo.ErrBadRange, conversation.LastSeq)
	}
	return at, nil
}

// Plan builds the plan of a conversation's next request.
func (cx *Contexts) Plan(ctx context.Context, conversation continuo.Conversation, at int64, view window.View, c catalog.ResolvedTurn, format Format) (*window.Plan, continuo.Envelope, error) {
	return cx.plan(ctx, conversation, at, view, c, format, Request{})
}

// plan is Plan with the query of a request, or its view recall.
func (cx *Contexts) plan(ctx context.Context, conversation continuo.Conversation, at int64, view window.View, c catalog.ResolvedTurn, format Format, request Request) (*window.Plan, continuo.Envelope, error) {
	c.View = view
	if request.View == catalog.RecallView {
		plan, err := cx.recallView(ctx, conversation, at, c, request)
		return plan, continuo.Envelope{System: c.System}, err
	}
	runner := cx.catalog.Runner(c)
	runner.Model = formatted{runner.Model, inFormat(runner.Model.Info(), format)}
	source, at, err := cx.sourceOf(ctx, runner, conversation, request.Query, at)
	if err != nil {
		return nil, continuo.Envelope{}, err
	}
	return runner.Plan(ctx, conversation, source, at)
}

// render writes the envelope's system messages and then the plan's messages in the format. A transcript has only the
// names of attachments.
func (c *Context) render(ctx context.Context, log *continuo.Log, envelope continuo.Envelope, info model.Info) (err error) {
	if c.Format != FormatTranscript {
		if err := turn.Attach(ctx, log, c.Plan); err != nil {
			return err
		}
	}
	options := render.Options{Provider: info.Provider}
	c.Plan.Withheld = render.Withheld(c.Plan.Messages, options)
	switch c.Format {
	case FormatOpenAI:
		c.Plan.Missing = append(c.Plan.Missing, render.UnsentOpenAIChat(c.Plan.Messages)...)
		c.Messages, err = render.OpenAIChat(append(systemMessages(envelope.System), c.Plan.Messages...), options)
	case FormatAnthropic:
		var system []string
		c.Plan.Missing = append(c.Plan.Missing, render.UnsentAnthropic(c.Plan.Messages, options)...)
		c.Messages, system, err = render.Anthropic(c.Plan.Messages, options)
		if all := append(append([]string{}, envelope.System...), system...); len(all) > 0 && err == nil {
			c.Text = strings.Join(all, "\n\n")
		}
	case FormatTranscript:
		c.Plan.Missing = append(c.Plan.Missing, render.UnsentText(c.Plan.Messages)...)
		c.Text = strings.Join(append(append([]string{}, envelope.System...), render.TranscriptOf(c.Plan).String()), "\n\n")
	default:
		err = fmt.Errorf("unknown format %q: %w; allowed: openai, anthropic, transcript, handoff", c.Format, continuo.ErrInvalid)
	}
	return err
}

func systemMessages(texts []string) []window.Message {
	var messages []window.Message
	for _, text := range texts {
		messages = append(messages, window.Message{Role: continuo.System, Content: continuo.Text(text)})
	}
	return messages
}

// Transcript writes a conversation as text. History bounds the messages before an open cycle: nil for the replay
// view's default, 0 for all.
func (cx *Contexts) Transcript(ctx context.Context, conversation continuo.Conversation, at int64, history *int) (render.Transcript, *window.Plan, error) {
	view, err := cx.catalog.View(window.Replay)
	if err != nil {
		return render.Transcript{}, nil, err
	}
	if history != nil {
		view.History = *history
	}
	upstream, err := cx.catalog.Upstream("")
	if err != nil {
		return render.Transcript{}, nil, err
	}
	if at, err = CheckSeq(conversation, at); err != nil {
		return render.Transcript{}, nil, err
	}
	plan, err := turn.Plan(ctx, cx.log, conversation, at, view, continuo.Envelope{}, upstream.Model.Info())
	if err != nil {
		return render.Transcript{}, nil, err
	}
	return render.TranscriptOf(plan), plan, nil
}
