package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"unicode"

	acp "github.com/coder/acp-go-sdk"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/model"
)

// Stream starts the agent and yields what it says; see [model.Model].
func (m *Model) Stream(caller context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := model.ContextError(caller); err != nil {
			yield(model.Delta{}, err)
			return
		}
		ctx, cancel := context.WithTimeout(caller, m.options.Timeout)
		defer cancel()
		a := &answer{options: m.options, yield: yield}
		finish, err := a.run(ctx, body)
		switch {
		case a.stopped:
			return
		case model.ContextError(caller) != nil:
			err = model.ContextError(caller)
		case ctx.Err() != nil:
			err = timeout(m.options)
		}
		if err != nil {
			yield(model.Delta{}, asError(err))
			return
		}
		yield(model.Delta{Finish: finish}, nil)
	}
}

func timeout(o Options) error {
	return &model.Error{
		Reason: continuo.ReasonTimeout, Err: context.DeadlineExceeded,
		Message: fmt.Sprintf("%s did not end within %s, which is the time that it has", o.Name, o.Timeout),
	}
}

// asError is what went wrong, as an upstream's fault where nobody said otherwise.
func asError(err error) error {
	var known *model.Error
	if errors.As(err, &known) {
		return known
	}
	return &model.Error{Reason: continuo.ReasonUpstream, Message: err.Error(), Err: err}
}

// answer is one answer under way.
type answer struct {
	options  Options
	yield    func(model.Delta, error) bool
	told     int    // bytes
	said     bool   // there is text
	apart    bool   // something came since the text, so that what follows is a paragraph of its own
	lastText string // the newest piece of text, and of reasoning
	lastLine string
	stopped  bool // nobody listens any more
}

// run starts the agent, tells what it says, and returns why it finished when it and all that it started are gone.
func (a *answer) run(ctx context.Context, body []byte) (finish string, err error) {
	request, err := prompt.Parse(body)
	if err != nil {
		return "", err
	}
	s, err := open(a.options)
	if err != nil {
		return "", err
	}
	defer s.close()
	var watching sync.WaitGroup
	defer watching.Wait()
	over := make(chan struct{})
	defer close(over)
	watching.Go(func() { s.cancelWhen(ctx, over) })
	if err := s.begin(); err != nil {
		return "", err
	}
	done, err := s.prompt(request.Text(), a.update, a.denied)
	if err != nil || a.stopped {
		return "", err
	}
	finish = finishOf(done.StopReason)
	switch {
	case done.StopReason == acp.StopReasonCancelled:
		return "", &model.Error{Reason: continuo.ReasonCancelled, Message: a.options.Name + " says that its turn was cancelled"}
	case finish == "stop" && !a.said:
		return "", fmt.Errorf("%s ended its turn without an answer%s", a.options.Name, s.process.Words())
	}
	return finish, nil
}

// finishOf is a stop reason in the words of model.Delta.
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

// update tells what comes while the agent works.
func (a *answer) update(update acp.SessionUpdate) error {
	switch {
	case update.AgentMessageChunk != nil:
		return a.text(contentText(update.AgentMessageChunk.Content))
	case update.AgentThoughtChunk != nil:
		a.apart = a.said
		return a.reason(contentText(update.AgentThoughtChunk.Content))
	case update.ToolCall != nil:
		a.apart = a.said
		return a.line("tool: " + oneLine(update.ToolCall.Title))
	}
	return nil
}

// denied tells that the agent was not permitted to do something.
func (a *answer) denied(call acp.ToolCallUpdate) {
	what := string(call.ToolCallId)
	if call.Title != nil && *call.Title != "" {
		what = *call.Title
	}
	_ = a.line("not permitted: " + oneLine(what)) // whoever listens no more is noticed at the next update
}

func (a *answer) text(text string) error {
	if text == "" {
		return nil
	}
	if a.apart && !strings.HasSuffix(a.lastText, "\n") && !strings.HasPrefix(text, "\n") {
		text = "\n\n" + text
	}
	a.said, a.apart, a.lastText = true, false, text
	return a.tell(model.Delta{Text: text}, len(text))
}

func (a *answer) reason(text string) error {
	if text == "" {
		return nil
	}
	a.lastLine = text
	return a.tell(model.Delta{Reasoning: text}, len(text))
}

// line is a line of reasoning.
func (a *answer) line(text string) error {
	if a.lastLine != "" && !strings.HasSuffix(a.lastLine, "\n") {
		text = "\n" + text
	}
	return a.reason(text + "\n")
}

// errStopped ends an answer that nobody listens to.
var errStopped = errors.New("nobody listens")

func (a *answer) tell(delta model.Delta, bytes int) error {
	if a.told += bytes; a.told > a.options.MaxOutput {
		return &ownError{fmt.Errorf("%s said more than %d bytes, which is all that it may", a.options.Name, a.options.MaxOutput)}
	}
	if a.stopped = a.stopped || !a.yield(delta, nil); a.stopped {
		return &ownError{errStopped}
	}
	return nil
}

// contentText is the text of a piece; what is none is named.
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

// maxTitle is how much of a tool's title is told, in characters.
const maxTitle = 200

// oneLine is a text on one line, and not too long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
	return cut(text, maxTitle)
}

// cut is at most limit characters of a text, and a mark where more was.
func cut(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
