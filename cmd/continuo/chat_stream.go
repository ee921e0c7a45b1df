package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// stream shows one turn while it runs.
type stream struct {
	*chatSession
	inLine   bool // the current line has text
	thinking bool // and that is thinking
	waiting  bool // the waiting sign is on the line
	wrap     *term.Wrapper
	text     strings.Builder
	failure  error
}

// newStream gets ready for one turn.
func (t *chatSession) newStream() *stream {
	s := &stream{chatSession: t, wrap: &term.Wrapper{Out: t.out}}
	if !t.plain {
		t.measure()
		s.wrap.Width = t.width
	}
	return s
}

// show shows one event.
func (s *stream) show(event turn.Event) {
	switch event.Kind {
	case turn.Planned:
		s.plan = event.Plan
		s.wait()
	case turn.ReasoningDelta:
		s.reasoning(event.Text)
	case turn.TextDelta:
		s.answerText(event.Text)
	case turn.FellBack:
		s.printAside("%s", s.clip(fmt.Sprintf("%s failed, asking another model: %s", event.Attempt.Round.Model, event.Attempt.Error.Message)))
	case turn.Answered:
		s.endLine()
	case turn.Called:
		s.printAside("%s", s.clip("→ "+callText(*event.Call, 300)))
	case turn.Decided:
		if !event.Decision.Allowed {
			s.printAside("%s", s.clip("✗ not allowed: "+callText(*event.Call, 300)))
		}
	case turn.ToolDone:
		s.printAside("%s", s.clip(resultText(event.Entry)))
	case turn.Finished:
		s.finish(event)
	case turn.Failed:
		s.fail(event)
	case turn.Started, turn.CallDelta, turn.Asked:
	}
}

// resultText describes a tool's result on one line.
func resultText(entry *continuo.Entry) string {
	words := toolText(entry) + " · " + term.Count(entry.Chars, "character")
	if entry.DurationMS > 0 {
		words += " · " + term.Number(entry.DurationMS) + " ms"
	}
	return words
}

// clip fits a remark to the terminal.
func (s *stream) clip(text string) string {
	if s.plain {
		return text
	}
	return term.Fit(text, max(s.width-1, 20))
}

// wait shows that an answer is on its way.
func (s *stream) wait() {
	s.clearWait()
	if !s.plain && !s.inLine && bool(s.paint) {
		_, _ = io.WriteString(s.out, s.paint.Dim("…"))
		s.waiting = true
	}
}

func (s *stream) clearWait() {
	if s.waiting {
		_, _ = io.WriteString(s.out, "\r\x1b[K")
		s.waiting = false
	}
}

// endLine ends the current line, if it has text.
func (s *stream) endLine() {
	s.clearWait()
	if s.inLine && !s.quiet {
		s.wrap.Flush()
		s.wrap.Write("\n")
	}
	if s.thinking && bool(s.paint) {
		_, _ = io.WriteString(s.out, "\x1b[0m")
	}
	s.inLine, s.thinking = false, false
}

// reasoning shows thinking, dim and in the terminal only.
func (s *stream) reasoning(text string) {
	if s.plain || text == "" {
		return
	}
	s.clearWait()
	if !s.thinking {
		s.endLine()
		if s.paint {
			_, _ = io.WriteString(s.out, "\x1b[2m")
		}
	}
	s.wrap.Write(term.Clean(text))
	s.wrap.Show()
	s.inLine, s.thinking = !strings.HasSuffix(text, "\n"), true
}

// answerText shows what the model says.
func (s *stream) answerText(text string) {
	if text == "" {
		return
	}
	s.clearWait()
	if s.thinking {
		s.endLine()
	}
	s.text.WriteString(text)
	if !s.quiet {
		s.wrap.Write(s.shown(text))
		s.wrap.Show()
	}
	s.inLine = !strings.HasSuffix(text, "\n")
}

// finish ends an answer with a line about what the model saw.
func (s *stream) finish(event turn.Event) {
	if s.text.Len() == 0 { // the answer of a turn that ended earlier comes as a whole
		s.answerText(event.Entry.Content.String())
	}
	s.endLine()
	s.ended = &event
	switch finishReason(event.Entry) {
	case "length":
		s.printAside("%s", "the answer was cut at its limit of tokens (models.NAME.max_output_tokens, or the model's own); a message such as \"continue\" continues it")
	case "content_filter":
		s.printAside("%s", "the answer "+finishText("content_filter"))
	}
	s.showContext()
}

// finishReason is why the model ended an answer; "" if it is not known.
func finishReason(entry *continuo.Entry) string {
	if entry.Round == nil {
		return ""
	}
	return entry.Round.FinishReason
}

func (s *stream) showContext() {
	if s.plan != nil {
		s.printAside("%s", s.clip("context: "+contextLine(s.plan)))
	}
	if !s.plain {
		s.print("")
	}
}

// fail ends an incomplete answer.
func (s *stream) fail(event turn.Event) {
	s.endLine()
	s.ended = &event
	failure := event.Entry.Error
	kept := keptText(event.Entry)
	if failure.Reason == continuo.ReasonCancelled && !s.plain {
		s.print("%s", s.paint.Yellow("Stopped: "+kept+"."))
		s.showContext()
		return
	}
	message := fmt.Sprintf("%s: %s; %s", failure.Reason, strings.TrimRight(failure.Message, "."), kept)
	if failure.Retryable {
		message += "; continue with: " + s.resumeCommand()
	}
	s.failure = &turnFailed{reason: failure.Reason, message: message}
	s.showContext()
}

// resumeCommand is the command that resumes an interrupted answer: at the prompt, or in a shell.
func (s *stream) resumeCommand() string {
	if !s.plain {
		return "/resume"
	}
	return "continuo chat " + shellQuote(nameOf(s.conversation)) + " --resume"
}

// keptText describes what the log has of an interrupted answer.
func keptText(entry *continuo.Entry) string {
	if !entry.Content.IsEmpty() {
		return fmt.Sprintf("what there is of the answer is kept as entry %d", entry.Seq)
	}
	if len(entry.Error.PartialToolCalls) > 0 {
		return "a tool call had begun, and was not made"
	}
	return "nothing of an answer had come"
}

// turnFailed says that a model gave no complete answer.
type turnFailed struct {
	reason  continuo.FailureReason
	message string
}

func (e *turnFailed) Error() string { return e.message }

// Is distinguishes an answer that was stopped from one that failed.
func (e *turnFailed) Is(target error) bool {
	return target == context.Canceled && (e.reason == continuo.ReasonCancelled || e.reason == continuo.ReasonInterrupted)
}
