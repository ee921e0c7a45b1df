package chatscreen

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// A question is answered by a line that was begun after the person could see the question. Input that was typed before
// may still be on its way: in the terminal, in the connection to it, in the system's buffer. So the screen asks the terminal to
// identify itself, which every terminal answers, and the answer is behind all that was typed before in the input. The
// first request may be written before the picture with the question is, since pictures are drawn at intervals, but the
// answer to it comes after at least one interval; so the answer to a second request is behind all that was typed before
// the terminal had the picture.

// identify asks the terminal to identify itself.
var identify = tea.Raw(ansi.RequestPrimaryDeviceAttributes)

// identified is the terminal's answer.
type identified = uv.PrimaryDeviceAttributesEvent

// requests is how many answers of the terminal a question waits for.
const requests = 2

// patience is how long it waits for a terminal that answers nothing.
const patience = 3 * time.Second

// question is a call that waits for a person's decision.
type question struct {
	asked   turn.Event
	waiting int // answers of the terminal that are missing until the question can be answered; -1 before it is shown
}

// silent says that a terminal has not answered in time.
type silent struct{ *question }

// askAgain is the interval at which it is checked whether a call still waits.
const askAgain = 300 * time.Millisecond

// recheck says that it is time for that, waits is the outcome.
type (
	recheck struct{ *question }
	waits   struct {
		*question
		still bool
	}
	decided struct {
		call string
		err  error
	}
)

// question is the one that is shown; nil for none.
func (m *Model) question() *question {
	if len(m.questions) == 0 {
		return nil
	}
	return m.questions[0]
}

// answers reports whether the line in the composer is the answer to a question.
func (m *Model) answers() bool {
	q := m.question()
	return q != nil && q.waiting == 0 && !m.early
}

// ask adds a question, unless the person has allowed all calls of the tool.
func (m *Model) ask(event turn.Event) tea.Cmd {
	if m.always[event.Call.Name] {
		return m.decide(event, turn.Decision{Allowed: true})
	}
	m.questions = append(m.questions, &question{asked: event, waiting: -1})
	return m.show()
}

// show shows the first question, if it is not shown yet. Where a list covers it, it is shown when that closes.
func (m *Model) show() tea.Cmd {
	q := m.question()
	if q == nil || q.waiting >= 0 || m.picker != nil {
		return nil
	}
	q.waiting = requests
	m.early = !m.input.isEmpty()
	m.scroll = 0
	return tea.Batch(identify, tea.Tick(patience, func(time.Time) tea.Msg { return silent{q} }), lookAgain(q))
}

func lookAgain(q *question) tea.Cmd {
	return tea.Tick(askAgain, func(time.Time) tea.Msg { return recheck{q} })
}

// identified takes an answer of the terminal.
func (m *Model) identified() tea.Cmd {
	q := m.question()
	if q == nil || q.waiting <= 0 {
		return nil
	}
	if q.waiting--; q.waiting > 0 {
		return identify
	}
	return nil
}

// remove removes a question, and shows the next one.
func (m *Model) remove(q *question) tea.Cmd {
	for i, other := range m.questions {
		if other == q {
			m.questions = append(m.questions[:i:i], m.questions[i+1:]...)
			break
		}
	}
	return m.show()
}

// answer takes a line as the answer to the question.
func (m *Model) answer(line string) tea.Cmd {
	q := m.question()
	decision := turn.Decision{}
	switch words := strings.TrimSpace(line); strings.ToLower(words) {
	case "y", "yes":
		decision.Allowed = true
	case "a", "always":
		decision.Allowed = true
		m.always[q.asked.Call.Name] = true
	case "n", "no":
	default:
		decision.Reason = words
	}
	cmds := []tea.Cmd{m.decide(q.asked, decision), m.remove(q)}
	for _, other := range m.questions {
		if m.always[other.asked.Call.Name] {
			cmds = append(cmds, m.decide(other.asked, turn.Decision{Allowed: true}), m.remove(other))
		}
	}
	return tea.Batch(cmds...)
}

func (m *Model) decide(asked turn.Event, decision turn.Decision) tea.Cmd {
	ctx, backend := m.ctx, m.backend
	return func() tea.Msg {
		return decided{asked.Call.ID, backend.Decide(ctx, asked, decision)}
	}
}

// look checks whether a call still waits.
func (m *Model) look(q *question) tea.Cmd {
	ctx, backend := m.ctx, m.backend
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return waits{q, backend.Waits(ctx, q.asked)}
	}
}

// narrow is the width below which less is said, in columns.
const narrow = 60

// questionLines are the question, and how to answer it.
func (m *Model) questionLines(width, room int) []string {
	q := m.question()
	if q == nil {
		return nil
	}
	lines := wrapped("May this run? "+callText(*q.asked.Call), width, paint.Yellow)
	how := "y: yes · n: no · a: always in this session · Ctrl-C: stop · or say what to do instead"
	switch {
	case m.early && width < narrow:
		how = "Not the answer: begun before the question. Enter sends it, Ctrl-C clears it."
	case width < narrow:
		how = "y · n · a: always · or what to do instead"
	case m.early:
		how = "This line was begun before the question: Enter sends it as the next message, Ctrl-C clears it. Then answer y, n or a."
	}
	if !q.asked.Until.IsZero() && width >= narrow {
		how += " · denied at " + q.asked.Until.Local().Format("15:04:05") + " without an answer"
	}
	if more := len(m.questions) - 1; more > 0 {
		how += " · " + term.Count(more, "more question")
	}
	end := wrapped(how, width, paint.Dim)
	if most := max(room-len(end), 2); len(lines) > most {
		lines = append(lines[:most:most], paint.Dim(term.Fit("… Ctrl-T shows all of it above", width)))
	}
	return append(lines, end...)
}
