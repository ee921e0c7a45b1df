package main

import (
	"context"
	"fmt"
	"io"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// member is a role in its form for people.
type member struct {
	name  string
	paint func(string) string
}

// crewTextScreen shows the roles' text as it is streamed, each below the role's name, and other events apart from it.
type crewTextScreen struct {
	*stream
	crew    *crewChatSession
	members map[string]member
	shown   map[int64]bool // entries whose text was printed already
	own     string         // the message that the person has just sent; "" once its entry was received
	role    string         // the role whose turn is in progress; "" for none
	turnID  string         // of that turn
	headed  bool           // the role's name was printed above its text
	held    string         // the beginning of the text, held back while it may be a pass or a label
	sign    time.Time      // when its last event came
	silence string         // the line that shows how long it has been silent
}

// update is part of crewScreen.
func (s *crewTextScreen) update(ctx context.Context, progress engine.CrewProgress) error {
	if progress.Turn != nil {
		return s.live(ctx, progress.Role, *progress.Turn)
	}
	if progress.Entry != nil {
		s.showEntry(progress.Entry)
	}
	return nil
}

// member is a role in its form for people; a role that the crew no longer has is shown by its name.
func (s *crewTextScreen) member(role string) member {
	if known, ok := s.members[role]; ok {
		return known
	}
	return member{term.OneLine(role, 64), s.paint.Bold}
}

// live shows an event of a role's turn.
func (s *crewTextScreen) live(ctx context.Context, role string, event turn.Event) error {
	if event.TurnID != s.turnID {
		s.finishSpeech()
		s.role, s.turnID = role, event.TurnID
	}
	s.sign = time.Now()
	switch event.Kind {
	case turn.ReasoningDelta:
		if !s.plain && event.Text != "" {
			s.head()
			s.reasoning(event.Text)
		}
	case turn.TextDelta:
		s.showText(event.Text)
	case turn.FellBack:
		s.printNote("%s failed, asking another model: %s", event.Attempt.Round.Model, event.Attempt.Error.Message)
	case turn.Asked:
		return s.askFor(ctx, event)
	case turn.Called:
		s.printNote("→ %s", callText(*event.Call, 300))
	case turn.Decided:
		if !event.Decision.Allowed {
			s.printNote("✗ not allowed: %s", callText(*event.Call, 300))
		}
	case turn.ToolDone:
		s.shown[event.Entry.Seq] = true
		s.printNote("%s", resultText(event.Entry))
	case turn.Answered, turn.Finished, turn.Failed:
		s.finishAnswer(event)
	case turn.Started, turn.Planned, turn.CallDelta:
	}
	return nil
}

// showText shows a fragment of a role's text, held back while it may turn out to be a pass, or the role's own label.
func (s *crewTextScreen) showText(text string) {
	s.held += text
	if s.text.Len() == 0 && crew.MayBecomePass(s.held, s.member(s.role).name, s.role) {
		return
	}
	s.release()
}

// release shows what was held back.
func (s *crewTextScreen) release() {
	if s.held == "" {
		return
	}
	s.head()
	text := s.held
	if s.text.Len() == 0 {
		text = crew.NormalizeAnswer(text, s.member(s.role).name, s.role)
	}
	s.held = ""
	s.answerText(text)
}

// finishAnswer finishes an answer with its entry.
func (s *crewTextScreen) finishAnswer(event turn.Event) {
	if entry := event.Entry; !s.shown[entry.Seq] {
		s.shown[entry.Seq] = true
		if s.text.Len() == 0 && s.held == "" {
			s.held = entry.Content.String() // the answer of a turn that ended earlier comes as a whole
		}
		if entry.IsPlaceholder() {
			s.held = ""
			s.printPass(s.member(s.role))
		}
		s.release()
		s.endLine()
		s.cut(entry)
		s.text.Reset()
	}
	if event.IsEnd() {
		s.finishSpeech()
	}
}

// cut says that an answer is incomplete, and why.
func (s *crewTextScreen) cut(entry *continuo.Entry) {
	if why := cutText(entry); why != "" {
		s.printNote("✂ %s", why)
	}
}

// cutText says why an answer that did not fail is incomplete; "" if it is complete.
func cutText(entry *continuo.Entry) string {
	if entry.Role != continuo.Assistant || entry.Round == nil || entry.Error != nil {
		return ""
	}
	if words := finishText(entry.Round.FinishReason); words != "" {
		return "this answer " + words
	}
	return ""
}

// finishText explains a finish reason of an incomplete answer; "" for any other.
func finishText(reason string) string {
	switch reason {
	case "length":
		return "was cut at the model's limit on its length"
	case "content_filter":
		return "was refused or cut by the model's provider"
	}
	return ""
}

// printPass says that a role has nothing to add.
func (s *crewTextScreen) printPass(speaker member) {
	s.printNote("%s has nothing to add", speaker.name)
}

// finishSpeech finishes the text of the current role.
func (s *crewTextScreen) finishSpeech() {
	s.endLine()
	s.silence = ""
	if s.headed {
		s.print("")
	}
	s.role, s.turnID, s.headed, s.held = "", "", false, ""
	s.text.Reset()
}

// head writes the role's name, once.
func (s *crewTextScreen) head() {
	if s.headed {
		return
	}
	s.endLine()
	s.headed = true
	s.headline(s.member(s.role))
}

func (s *crewTextScreen) headline(speaker member) {
	if s.plain {
		s.print("%s:", speaker.name)
		return
	}
	s.print("%s", s.paint.Bold(speaker.paint(speaker.name)))
}

// printNote writes a line that is not a role's text.
func (s *crewTextScreen) printNote(format string, args ...any) {
	s.endLine()
	s.printAside("%s", s.clip(term.OneLine(fmt.Sprintf(format, args...), 1000)))
}

// printError writes an error without truncation, since a person has to fix it.
func (s *crewTextScreen) printError(text string) {
	s.endLine()
	text = term.OneLine(text, 1000)
	if s.plain {
		s.note("%s", s.notePaint.Yellow(text))
		return
	}
	s.print("%s", s.paint.Yellow(text))
}

// askFor handles a call that waits for a decision: only a person at this terminal is asked, and calls of turns that run
// in another process are left to it.
func (s *crewTextScreen) askFor(ctx context.Context, event turn.Event) error {
	canAsk := !s.plain && s.lines != nil
	if !canAsk && !s.crew.isOurs(ctx, event.TurnID) {
		return nil
	}
	s.release()
	s.endLine()
	s.sign = time.Now()
	return s.crew.decide(ctx, s.stream, event)
}

// showEntry shows an entry of the log: an answer that was not streamed, or an entry outside of turns.
func (s *crewTextScreen) showEntry(entry *continuo.Entry) {
	if event := entry.RunEvent; event != nil {
		s.showEvent(entry, event)
	}
	switch {
	case entry.Hidden || s.shown[entry.Seq]:
	case entry.Role == continuo.User:
		s.personMessage(entry)
	case entry.IsPlaceholder():
		s.printPass(s.member(entry.Author.RoleName))
	case entry.Role == continuo.Assistant:
		s.showAnswer(entry)
	case entry.Role == continuo.Tool:
		s.printNote("%s", resultText(entry))
	}
}

// personMessage shows a person's message, unless it was just sent here.
func (s *crewTextScreen) personMessage(entry *continuo.Entry) {
	if s.own != "" && entry.Content.String() == s.own {
		s.own = ""
		return
	}
	speaker := member{"User", s.paint.Bold}
	if entry.Author != nil && entry.Author.DisplayName != "" {
		speaker.name = fmt.Sprintf("User (%s)", term.OneLine(entry.Author.DisplayName, 64))
	}
	s.printSpeech(speaker, entry)
}

// showAnswer shows an answer that was not streamed.
func (s *crewTextScreen) showAnswer(entry *continuo.Entry) {
	name := entry.NodeID
	if entry.Author != nil && entry.Author.RoleName != "" {
		name = entry.Author.RoleName
	}
	s.printSpeech(s.member(name), entry)
}

func (s *crewTextScreen) printSpeech(speaker member, entry *continuo.Entry) {
	s.finishSpeech()
	s.headline(speaker)
	text := entry.Content.String()
	if text != "" {
		s.answerText(text)
	}
	s.endLine()
	s.cut(entry)
	if s.plain && entry.Error != nil && text != "" {
		s.print("  [broke off: %s]", entry.Error.Reason)
	}
	for _, call := range entry.ToolCalls {
		s.printNote("→ %s", callText(call, 300))
	}
	if entry.Error != nil {
		s.printNote("%s broke off: %s", speaker.name, entry.Error.Message)
	}
	s.print("")
	s.text.Reset()
}

// showEvent shows a recorded event of the cycle.
func (s *crewTextScreen) showEvent(entry *continuo.Entry, event *continuo.RunEvent) {
	switch event.Kind {
	case continuo.RunNodeBegan:
		s.finishSpeech()
		s.role, s.sign = entry.NodeID, time.Now()
		if event.Attempt > 1 {
			s.printNote("%s is asked again, attempt %d", s.member(entry.NodeID).name, event.Attempt)
		}
	case continuo.CrewRoleFailed:
		s.finishSpeech()
		s.printError(fmt.Sprintf("✗ %s did not answer: %s", s.member(entry.NodeID).name, event.Reason))
	case continuo.CrewReset, continuo.CrewRestored, continuo.RunResumed:
		s.printNote("%s", entry.Content.String())
	}
}

// tick shows how long the current role has been silent.
func (s *crewTextScreen) tick(now time.Time) {
	if s.plain || s.inLine || s.role == "" || !bool(s.paint) {
		return
	}
	speaker := s.member(s.role)
	words := "is speaking…"
	if silent := now.Sub(s.sign); silent >= time.Second {
		words += fmt.Sprintf(" %d s", int(silent.Seconds()))
	}
	line := term.Fit(speaker.name, max(s.width-len(words)-4, 8)) + " " + words
	if s.waiting && line == s.silence {
		return
	}
	s.clearWait()
	_, _ = io.WriteString(s.out, s.paint.Dim(line))
	s.waiting, s.silence = true, line
}

// end says how the cycle ended, if it ended by itself; the command says the rest. The reason is not truncated: its end
// contains the limit that was reached and why roles failed.
func (s *crewTextScreen) end(status *engine.CrewStatus) {
	s.finishSpeech()
	if status != nil && status.State == continuo.RunFinished {
		s.endLine()
		s.printAside("The cycle has ended: %s.", term.OneLine(status.Reason, 1000))
	}
}
