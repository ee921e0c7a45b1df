package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Format is a wire format in which a context can be shown.
type Format string

// The formats.
const (
	FormatOpenAI     Format = "openai"
	FormatAnthropic  Format = "anthropic"
	FormatTranscript Format = "transcript"
)

// ContextRequest asks what a reader of a conversation sees.
type ContextRequest struct {
	// View is a preset's name. Default: the agent's, else continuity.
	View string
	// Format is the rendering. Default: transcript for the replay view, handoff for the handoff view, openai for the others.
	Format Format
	// At is the newest seq to consider. Default 0: the newest there is.
	At int64
	// MaxMessages, MaxChars and MaxTokens replace the view's limits; nil leaves them, 0 lifts them.
	MaxMessages, MaxChars, MaxTokens *int
	// Model names who would read it: its tokenizer counts. Default: the agent's, else the default model.
	Model string
	// AgentID names who would answer. Default: the conversation's active agent, where its mode has one.
	AgentID string
	// System adds the system messages of the conversation's mode, of the role, or of the run's step.
	System bool
	// RunID names a run of the conversation whose next step is the reader, or the step that is under way; of one that
	// failed or was stopped the step that it would go on with. The step says who answers: AgentID and Model do not count.
	RunID string
	// Crew names the crew of the view role:NAME. Default: the one that spoke last at that place.
	Crew string
}

// Context is what a reader of a conversation sees.
type Context struct {
	View     string            `json:"view"`
	Format   Format            `json:"format"`
	Messages []json.RawMessage `json:"messages,omitzero"`
	Text     string            `json:"text,omitempty"`
	Plan     *continuo.Plan    `json:"plan"`
}

// Context builds what a reader sees, without a model and without changing anything.
func (e *Engine) Context(ctx context.Context, conversation continuo.Conversation, request ContextRequest) (*Context, error) {
	at, err := placeIn(conversation, request.At)
	if err != nil {
		return nil, err
	}
	chosen, err := e.chooseReader(ctx, conversation, request, at)
	if err != nil {
		return nil, err
	}
	view, err := limited(chosen.view, request)
	if err != nil {
		return nil, err
	}
	info := chosen.upstream.Model.Info()
	envelope := e.envelope(ctx, chosen)
	plan, err := turn.Plan(ctx, e.Log, conversation, at, view, envelope, info)
	if err != nil {
		return nil, err
	}
	result := &Context{View: view.Name, Format: request.Format, Plan: plan}
	if result.Format == "" {
		result.Format = usualFormat(view.Name)
	}
	if !request.System {
		envelope.System = nil
	}
	if result.Format == FormatHandoff {
		err = e.renderHandoff(ctx, conversation, envelope, result)
	} else {
		err = result.render(ctx, e.Log, envelope, info)
	}
	if err != nil {
		return nil, err
	}
	history := result.Messages
	if result.Format == FormatOpenAI {
		history = history[len(envelope.System):]
	}
	plan.Totals.SharedBytes = e.sharedBytes(ctx, conversation, plan, &Context{Format: result.Format, Messages: history}, info)
	return result, nil
}

// usualFormat is the format of a view that is asked for in none.
func usualFormat(view string) Format {
	switch view {
	case window.Replay:
		return FormatTranscript
	case window.Handoff:
		return FormatHandoff
	}
	return FormatOpenAI
}

// chooseReader looks up who reads: a role of a crew, or whoever a message would go to.
func (e *Engine) chooseReader(ctx context.Context, conversation continuo.Conversation, request ContextRequest, at int64) (chosen, error) {
	if role, ok := strings.CutPrefix(request.View, RoleView); ok {
		return e.chooseRoleAt(ctx, conversation, request.Crew, role, at)
	}
	if request.RunID != "" {
		return e.chooseStepAt(ctx, conversation, request, at)
	}
	mode, agent := stance(conversation, "", request.AgentID)
	return e.choose(choice{mode: mode, agent: agent, model: request.Model, viewName: request.View})
}

// chooseStepAt looks up what the next step of a run runs with, as the run stood at an entry. It is what [Engine.step]
// runs it with, but for the cue, which is not in the log before the step begins.
func (e *Engine) chooseStepAt(ctx context.Context, conversation continuo.Conversation, request ContextRequest, at int64) (chosen, error) {
	t, err := e.runAt(ctx, conversation, request.RunID, at)
	if err != nil {
		return chosen{}, err
	}
	if t.state.Run == continuo.RunFailed || t.state.Run == continuo.RunStopped {
		resumed := t.state.Resume()
		if err := t.state.Apply(&resumed); err != nil {
			return chosen{}, err
		}
	}
	step := t.state.Next()
	if step.Node == nil {
		return chosen{}, fmt.Errorf("run %s: %w: it is %s there, and no step of it is to be carried out", request.RunID, continuo.ErrInvalid, t.state.Run)
	}
	found, err := e.choose(choice{
		mode: continuo.ModeRun, agent: step.Node.Agent, model: step.Node.Model, viewName: cmp.Or(request.View, step.Node.View), usualView: string(continuo.ModeRun),
	})
	if err != nil {
		return chosen{}, fmt.Errorf("the step %s: %w", step.Node.ID, err)
	}
	texts, err := t.state.Texts(step)
	found.system, found.policy = append(found.system, texts...), found.policy.Merge(step.Node.Tools)
	return found, err
}

// runAt follows a run of a conversation up to an entry.
func (e *Engine) runAt(ctx context.Context, conversation continuo.Conversation, runID string, at int64) (*tracker, error) {
	run, err := e.Log.Runs().Run(ctx, conversation.ProjectID, runID)
	if _, cycle := continuo.CrewOf(run.WorkflowID); err == nil && (cycle || run.ConversationID != conversation.ID) {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("run %s of the conversation %s: %w", shorten(runID, 60), conversation.ID, err)
	}
	if at < run.FirstSeq {
		return nil, fmt.Errorf("at %d: %w: the run %s began with entry %d", at, continuo.ErrBadRange, run.ID, run.FirstSeq)
	}
	t := newTracker(e, run)
	return t, t.read(ctx, at, func(*continuo.Entry) bool { return true })
}

// limited is a view with the limits that a request replaces.
func limited(view window.View, request ContextRequest) (window.View, error) {
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
	return view, nil
}

// placeIn checks a seq against a conversation; 0 is the newest.
func placeIn(conversation continuo.Conversation, at int64) (int64, error) {
	if at == 0 {
		return conversation.LastSeq, nil
	}
	if at < 0 || at > conversation.LastSeq {
		return 0, fmt.Errorf("at %d: %w: the conversation has entries 1 to %d", at, continuo.ErrBadRange, conversation.LastSeq)
	}
	return at, nil
}

// envelope is what the next request of a conversation would hold besides the log.
func (e *Engine) envelope(ctx context.Context, c chosen) continuo.Envelope {
	envelope := continuo.Envelope{
		Model: c.upstream.Model.Info().Name, System: c.system,
		MaxOutputTokens: c.upstream.MaxOutputTokens, Temperature: c.upstream.Temperature, Stream: true,
	}
	if c.tools != nil {
		envelope.Tools = c.policy.Offered(c.tools.Tools(ctx)).Specs()
	}
	return envelope
}

// render writes the plan's messages, after the envelope's system messages, in the format. A transcript has
// nothing but the names of attachments.
func (c *Context) render(ctx context.Context, log *continuo.Log, envelope continuo.Envelope, info model.Info) (err error) {
	if c.Format != FormatTranscript {
		if err := turn.Attach(ctx, log, c.Plan); err != nil {
			return err
		}
	}
	options := render.Options{Provider: info.Provider}
	switch c.Format {
	case FormatOpenAI:
		c.Messages, err = render.OpenAIChat(append(systemMessages(envelope.System), c.Plan.Messages...), options)
	case FormatAnthropic:
		var system []string
		c.Messages, system, err = render.Anthropic(c.Plan.Messages, options)
		if all := append(append([]string{}, envelope.System...), system...); len(all) > 0 && err == nil {
			c.Text = strings.Join(all, "\n\n")
		}
	case FormatTranscript:
		c.Text = strings.Join(append(append([]string{}, envelope.System...), render.TranscriptOf(c.Plan).String()), "\n\n")
	default:
		err = fmt.Errorf("unknown format %q: %w: known are openai, anthropic, transcript, handoff", c.Format, continuo.ErrInvalid)
	}
	return err
}

func systemMessages(texts []string) []continuo.Message {
	var messages []continuo.Message
	for _, text := range texts {
		messages = append(messages, continuo.Message{Role: continuo.System, Content: continuo.Text(text)})
	}
	return messages
}

// sharedBytes returns how many leading bytes of a rendering, without system messages, are those of the view's request before, -1
// when there is none within the window.
func (e *Engine) sharedBytes(ctx context.Context, conversation continuo.Conversation, plan *continuo.Plan, now *Context, info model.Info) int64 {
	before := previousRound(plan)
	if before == nil || now.Format == FormatTranscript {
		return -1
	}
	envelope, err := e.Log.Envelope(ctx, before.Envelope)
	if err != nil {
		return -1
	}
	var view window.View
	if json.Unmarshal(envelope.View, &view) != nil {
		return -1
	}
	earlier, err := turn.Plan(ctx, e.Log, conversation, before.At, view, envelope, info)
	if err != nil {
		return -1
	}
	then := &Context{Format: now.Format, Plan: earlier}
	if then.render(ctx, e.Log, continuo.Envelope{}, info) != nil {
		return -1
	}
	return commonPrefix(joined(then.Messages), joined(now.Messages))
}

// previousRound finds the newest request of the plan's view among what the plan shows.
func previousRound(plan *continuo.Plan) *continuo.Round {
	for i := len(plan.Messages) - 1; i >= 0; i-- {
		entry := plan.Messages[i].Entry
		if entry != nil && entry.Round != nil && entry.Round.ViewHash == plan.ViewHash {
			return entry.Round
		}
	}
	return nil
}

func joined(messages []json.RawMessage) string {
	var text strings.Builder
	for _, message := range messages {
		text.Write(message)
		text.WriteByte(',')
	}
	return text.String()
}

func commonPrefix(a, b string) int64 {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int64(i)
		}
	}
	return int64(n)
}

// Replayed is a request of an earlier round, made again.
type Replayed struct {
	Body   json.RawMessage `json:"body"`
	SHA256 string          `json:"sha256"`
	// Same says that these are the very bytes that were sent.
	Same bool `json:"same"`
	// Redacted are the seqs of entries that the request shows and that were redacted since: it is not the same.
	Redacted []int64         `json:"redacted,omitempty"`
	Round    *continuo.Round `json:"round"`
	Plan     *continuo.Plan  `json:"plan"`
}

// Request makes the request again that an assistant entry came of.
func (e *Engine) Request(ctx context.Context, conversation continuo.Conversation, seq int64) (*Replayed, error) {
	if _, err := placeIn(conversation, seq); err != nil {
		return nil, err
	}
	for entry, err := range e.Log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return nil, err
		}
		if entry.Round == nil {
			return nil, fmt.Errorf("entry %d: %w: no request made it; choose an assistant entry that a turn appended", seq, continuo.ErrNotFound)
		}
		request, same, err := turn.Replay(ctx, e.Log, conversation, entry.Round)
		if err != nil {
			return nil, err
		}
		replayed := &Replayed{Body: request.Body, SHA256: request.SHA256(), Same: same, Round: entry.Round, Plan: request.Plan}
		if !same {
			replayed.Redacted = append(e.redactedSummary(ctx, conversation, &entry), redactedSince(request.Plan, &entry)...)
		}
		return replayed, nil
	}
	return nil, fmt.Errorf("entry %d: %w", seq, continuo.ErrNotFound)
}

// Transcript writes a conversation as text. History bounds the messages before an open cycle: nil for
// the replay view's own figure, 0 for all.
func (e *Engine) Transcript(ctx context.Context, conversation continuo.Conversation, at int64, history *int) (string, *continuo.Plan, error) {
	view, err := e.options.Views.View(window.Replay)
	if err != nil {
		return "", nil, err
	}
	if history != nil {
		view.History = *history
	}
	upstream, err := e.upstream("")
	if err != nil {
		return "", nil, err
	}
	if at, err = placeIn(conversation, at); err != nil {
		return "", nil, err
	}
	plan, err := turn.Plan(ctx, e.Log, conversation, at, view, continuo.Envelope{}, upstream.Model.Info())
	if err != nil {
		return "", nil, err
	}
	return render.TranscriptOf(plan).String(), plan, nil
}
