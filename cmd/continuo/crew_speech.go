package main

import (
	"context"
	"fmt"
	"io"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// member is a role as people see it.
type member struct {
	name  string
	paint func(string) string
}

// crewSpeech shows what the roles say as they say it, each below its name, and apart from it what else happens.
type crewSpeech struct {
	*stream
	crew    *crewTalk
	members map[string]member
	shown   map[int64]bool // entries whose text stands on the screen already
	own     string         // what the person has just said; "" once it was heard
	role    string         // whose turn is under way; "" for nobody's
	turnID  string         // of that turn
	headed  bool           // the name stands above what it says
	held    string         // the beginning of what it says, while that may be a pass or a label
	sign    time.Time      // when it was heard of last
	silence string         // the line that stands for its silence
}

// took is part of crewScreen.
func (s *crewSpeech) took(ctx context.Context, progress engine.CrewProgress) error {
	if progress.Turn != nil {
		return s.live(ctx, progress.Role, *progress.Turn)
	}
	if progress.Entry != nil {
		s.entry(progress.Entry)
	}
	return nil
}

// who is a role as people see it; one that the crew does not have any more is known by its name.
func (s *crewSpeech) who(role string) member {
	if known, ok := s.members[role]; ok {
		return known
	}
	return member{oneLine(role, 64), s.paint.bold}
}

// live shows an event of a role's turn.
func (s *crewSpeech) live(ctx context.Context, role string, event turn.Event) error {
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
		s.say(event.Text)
	case turn.FellBack:
		s.aside("%s failed, asking another model: %s", event.Attempt.Round.Model, event.Attempt.Error.Message)
	case turn.Asked:
		return s.askFor(ctx, event)
	case turn.Called:
		s.aside("→ %s", callWords(*event.Call, 300))
	case turn.Decided:
		if !event.Decision.Allowed {
			s.aside("✗ not allowed: %s", callWords(*event.Call, 300))
		}
	case turn.ToolDone:
		s.shown[event.Entry.Seq] = true
		s.aside("%s", resultWords(event.Entry))
	case turn.Answered, turn.Finished, turn.Failed:
		s.said(event)
	case turn.Started, turn.Planned, turn.CallDelta:
	}
	return nil
}

// say shows a piece of what a role says, held back while it may turn out to be a pass, or the role's own label.
func (s *crewSpeech) say(text string) {
	s.held += text
	if s.text.Len() == 0 && crew.MayBecomePass(s.held, s.who(s.role).name, s.role) {
		return
	}
	s.release()
}

// release shows what was held back.
func (s *crewSpeech) release() {
	if s.held == "" {
		return
	}
	s.head()
	text := s.held
	if s.text.Len() == 0 {
		text = crew.Spoken(text, s.who(s.role).name, s.role)
	}
	s.held = ""
	s.answerText(text)
}

// said ends an answer with its entry.
func (s *crewSpeech) said(event turn.Event) {
	if entry := event.Entry; !s.shown[entry.Seq] {
		s.shown[entry.Seq] = true
		if s.text.Len() == 0 && s.held == "" {
			s.held = entry.Content.String() // a turn that was over when it was looked at gives its answer whole
		}
		if entry.IsPlaceholder() {
			s.held = ""
			s.passes(s.who(s.role))
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

// cut says of an answer that it is not whole, and why.
func (s *crewSpeech) cut(entry *continuo.Entry) {
	if why := cutWords(entry); why != "" {
		s.aside("✂ %s", why)
	}
}

// cutWords says why an answer that did not fail is not whole; "" where it is.
func cutWords(entry *continuo.Entry) string {
	if entry.Role != continuo.Assistant || entry.Round == nil || entry.Error != nil {
		return ""
	}
	if words := finishWords(entry.Round.FinishReason); words != "" {
		return "this answer " + words
	}
	return ""
}

// finishWords says what a finish reason means where an answer is not whole; "" for any other.
func finishWords(reason string) string {
	switch reason {
	case "length":
		return "was cut at the model's limit on its length"
	case "content_filter":
		return "was refused or cut by the model's provider"
	}
	return ""
}

// passes says that a role has nothing to add.
func (s *crewSpeech) passes(who member) { s.aside("%s has nothing to add", who.name) }

// finishSpeech ends what the role whose turn it was has said.
func (s *crewSpeech) finishSpeech() {
	s.endLine()
	s.silence = ""
	if s.headed {
		s.print("")
	}
	s.role, s.turnID, s.headed, s.held = "", "", false, ""
	s.text.Reset()
}

// head writes who speaks, once.
func (s *crewSpeech) head() {
	if s.headed {
		return
	}
	s.endLine()
	s.headed = true
	s.headline(s.who(s.role))
}

func (s *crewSpeech) headline(who member) {
	if s.plain {
		s.print("%s:", who.name)
		return
	}
	s.print("%s", s.paint.bold(who.paint(who.name)))
}

// aside says in one line what is no speech.
func (s *crewSpeech) aside(format string, args ...any) {
	s.endLine()
	s.remark("%s", s.clip(oneLine(fmt.Sprintf(format, args...), 1000)))
}

// fault says what went wrong: whole, since a person has to mend it.
func (s *crewSpeech) fault(text string) {
	s.endLine()
	text = oneLine(text, 1000)
	if s.plain {
		s.note("%s", s.notePaint.yellow(text))
		return
	}
	s.print("%s", s.paint.yellow(text))
}

// askFor sees to a call that waits for a decision: nobody but a person at this terminal is asked, and calls of turns
// that run elsewhere are left to those who are there.
func (s *crewSpeech) askFor(ctx context.Context, event turn.Event) error {
	canAsk := !s.plain && s.lines != nil
	if !canAsk && !s.crew.isOurs(ctx, event.TurnID) {
		return nil
	}
	s.release()
	s.endLine()
	s.sign = time.Now()
	return s.crew.decide(ctx, s.stream, event)
}

// entry shows what stands in the log: what was not heard live, and what is no turn's.
func (s *crewSpeech) entry(entry *continuo.Entry) {
	if event := entry.RunEvent; event != nil {
		s.event(entry, event)
	}
	switch {
	case entry.Hidden || s.shown[entry.Seq]:
	case entry.Role == continuo.User:
		s.heard(entry)
	case entry.IsPlaceholder():
		s.passes(s.who(entry.Author.RoleName))
	case entry.Role == continuo.Assistant:
		s.whole(entry)
	case entry.Role == continuo.Tool:
		s.aside("%s", resultWords(entry))
	}
}

// heard shows what a person says, unless it is what was just said here.
func (s *crewSpeech) heard(entry *continuo.Entry) {
	if s.own != "" && entry.Content.String() == s.own {
		s.own = ""
		return
	}
	who := member{"User", s.paint.bold}
	if entry.Author != nil && entry.Author.DisplayName != "" {
		who.name = fmt.Sprintf("User (%s)", oneLine(entry.Author.DisplayName, 64))
	}
	s.speech(who, entry)
}

// whole shows an answer that was not heard live.
func (s *crewSpeech) whole(entry *continuo.Entry) {
	name := entry.NodeID
	if entry.Author != nil && entry.Author.RoleName != "" {
		name = entry.Author.RoleName
	}
	s.speech(s.who(name), entry)
}

func (s *crewSpeech) speech(who member, entry *continuo.Entry) {
	s.finishSpeech()
	s.headline(who)
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
		s.aside("→ %s", callWords(call, 300))
	}
	if entry.Error != nil {
		s.aside("%s broke off: %s", who.name, entry.Error.Message)
	}
	s.print("")
	s.text.Reset()
}

// event says what is recorded of the cycle.
func (s *crewSpeech) event(entry *continuo.Entry, event *continuo.RunEvent) {
	switch event.Kind {
	case continuo.RunNodeBegan:
		s.finishSpeech()
		s.role, s.sign = entry.NodeID, time.Now()
		if event.Attempt > 1 {
			s.aside("%s is asked again, attempt %d", s.who(entry.NodeID).name, event.Attempt)
		}
	case continuo.CrewRoleFailed:
		s.finishSpeech()
		s.fault(fmt.Sprintf("✗ %s did not answer: %s", s.who(entry.NodeID).name, event.Reason))
	case continuo.CrewReset, continuo.CrewRestored, continuo.RunResumed:
		s.aside("%s", entry.Content.String())
	}
}

// beat shows for how long the role whose turn it is has said nothing.
func (s *crewSpeech) beat(now time.Time) {
	if s.plain || s.inLine || s.role == "" || !bool(s.paint) {
		return
	}
	who := s.who(s.role)
	words := "is speaking…"
	if silent := now.Sub(s.sign); silent >= time.Second {
		words += fmt.Sprintf(" %d s", int(silent.Seconds()))
	}
	line := fit(who.name, max(s.width-len(words)-4, 8)) + " " + words
	if s.waiting && line == s.silence {
		return
	}
	s.clearWait()
	_, _ = io.WriteString(s.out, s.paint.dim(line))
	s.waiting, s.silence = true, line
}

// end says how the cycle ended, where it did so by itself; whatever else there is to say the command says. The reason
// is whole: at its end stand the limit that was reached and why roles failed.
func (s *crewSpeech) end(status *engine.CrewStatus) {
	s.finishSpeech()
	if status != nil && status.State == continuo.RunFinished {
		s.endLine()
		s.remark("The cycle has ended: %s.", oneLine(status.Reason, 1000))
	}
}
