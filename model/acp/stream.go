package acp

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode"

	acp "github.com/coder/acp-go-sdk"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/timed"
)

// Stream starts the agent, prompts it once and ends it; see [model.Model].
func (m *Model) Stream(caller context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return timed.Stream(caller, m.options.Name, m.options.Timeout, func(ctx context.Context, yield func(model.Delta) bool) (string, error) {
		request, err := prompt.Parse(body)
		if err != nil {
			return "", err
		}
		s, err := m.open(ctx, "")
		if err != nil {
			return "", err
		}
		defer s.end()
		return s.answer(ctx, request.Text(), yield)
	})
}

// answer prompts the agent, yields the answer, and returns the finish reason.
func (s *session) answer(ctx context.Context, text string, yield func(model.Delta) bool) (finish string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &answer{options: s.options, listener: yield, cancel: cancel}
	done, err := s.prompt(ctx, text, a)
	if err != nil || a.stopped {
		return "", err
	}
	finish = finishOf(done.StopReason)
	switch {
	case done.StopReason == acp.StopReasonCancelled:
		return "", &model.Error{Reason: continuo.ReasonCancelled, Message: s.options.Name + " says that its turn was cancelled"}
	case finish == "stop" && !a.hasText:
		return "", fmt.Errorf("%s ended its turn without an answer%s", s.options.Name, s.process.Stderr())
	}
	return finish, nil
}

// finishOf maps a stop reason to that of model.Delta.
func finishOf(reason acp.StopReason) string {
	switch reason {
	case acp.StopReasonEndTurn, "":
		return "stop"
	case acp.StopReasonMaxTokens:
		return "length"
	case acp.StopReasonRefusal:
		return "content_filter"
	}
	return string(reason)
}

// answer is one answer in progress.
type answer struct {
	options  Options
	listener func(model.Delta) bool
	cancel   func() // cancels the turn
	yielded  int    // bytes yielded
	hasText  bool   // there was text
	apart    bool   // other output followed the text, so that further text begins a paragraph
	lastText string // the newest piece of text or reasoning
	lastLine string
	stopped  bool // the consumer has stopped
}

// update handles a message of the agent during its turn.
func (a *answer) update(update acp.SessionUpdate) error {
	switch {
	case update.AgentMessageChunk != nil:
		return a.text(contentText(update.AgentMessageChunk.Content))
	case update.AgentThoughtChunk != nil:
		a.apart = a.hasText
		return a.reason(contentText(update.AgentThoughtChunk.Content))
	case update.ToolCall != nil:
		a.apart = a.hasText
		return a.line("tool: " + oneLine(update.ToolCall.Title))
	}
	return nil
}

// denied yields a line saying that the agent was denied a permission.
func (a *answer) denied(call acp.ToolCallUpdate) {
	what := string(call.ToolCallId)
	if call.Title != nil && *call.Title != "" {
		what = *call.Title
	}
	_ = a.line("not permitted: " + oneLine(what)) // a stopped consumer is noticed at the next update
}

func (a *answer) text(text string) error {
	if text == "" {
		return nil
	}
	if a.apart && !strings.HasSuffix(a.lastText, "\n") && !strings.HasPrefix(text, "\n") {
		text = "\n\n" + text
	}
	a.hasText, a.apart, a.lastText = true, false, text
	return a.yield(model.Delta{Text: text}, len(text))
}

func (a *answer) reason(text string) error {
	if text == "" {
		return nil
	}
	a.lastLine = text
	return a.yield(model.Delta{Reasoning: text}, len(text))
}

// line yields a line of reasoning.
func (a *answer) line(text string) error {
	if a.lastLine != "" && !strings.HasSuffix(a.lastLine, "\n") {
		text = "\n" + text
	}
	return a.reason(text + "\n")
}

// yield yields a delta. When the consumer has stopped, it cancels the turn and drops further output.
func (a *answer) yield(delta model.Delta, bytes int) error {
	if a.stopped {
		return nil
	}
	if a.yielded += bytes; a.yielded > a.options.MaxOutput {
		return &ownError{&model.Error{
			Reason: continuo.ReasonTurnLimit, Message: fmt.Sprintf("%s sent more than the maximum of %d bytes", a.options.Name, a.options.MaxOutput),
		}}
	}
	if a.stopped = !a.listener(delta); a.stopped {
		a.cancel()
	}
	return nil
}

// contentText returns the text of a piece; other content is named.
func contentText(content acp.ContentBlock) string {
	switch {
	case content.Text != nil:
		return content.Text.Text
	case content.Image != nil:
		return "[image]"
	case content.Audio != nil:
		return "[audio]"
	case content.ResourceLink != nil:
		return "[" + content.ResourceLink.Name + "](" + content.ResourceLink.Uri + ")"
	case content.Resource != nil:
		return "[resource]"
	}
	return ""
}

// maxTitle bounds the length of a tool's title, in characters.
const maxTitle = 200

// oneLine returns a text on one line, shortened if necessary.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
	return cut(text, maxTitle)
}

// cut shortens a text to limit characters and marks the cut.
func cut(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
