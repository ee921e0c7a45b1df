package chatscreen

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// send sends a line, or queues it while something runs.
func (m *Model) send(line string) tea.Cmd {
	m.scroll = 0
	if m.running != nil || !m.ready {
		m.queue = append(m.queue, line)
		return nil
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	r := &running{cancel: cancel, began: time.Now(), phase: "sending", calls: map[string]*block{}}
	m.running = r
	if !isCommand(line) {
		r.own = m.add(&block{kind: said, text: line})
	} else {
		m.add(&block{kind: command, text: line})
	}
	backend, width := m.backend, max(m.width-2, 16)
	take := func() tea.Msg {
		result, err := backend.Take(ctx, line, width)
		return took{r, result, err}
	}
	return tea.Batch(take, nextFrame())
}

// isCommand reports whether a line is a command.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "/") && !strings.HasPrefix(line, "//")
}

// took continues with what became of a line.
func (m *Model) took(msg took) tea.Cmd {
	if m.running != msg.running {
		return nil
	}
	if msg.err != nil {
		if msg.stopping {
			m.addNote("Stopped before it began.")
		} else {
			m.report(msg.err)
		}
		return m.ended()
	}
	result := msg.result
	var cmds []tea.Cmd
	if result.Changed {
		m.blocks, m.figures = blocksOf(result.Entries), Figures{}
		m.state = m.backend.State()
	}
	if result.Output != "" {
		m.add(&block{kind: aside, text: result.Output})
	}
	switch {
	case result.Draft == "":
	case m.input.isEmpty():
		m.input.set(result.Draft)
	default: // what the person has typed meanwhile stays
		m.input.remember(result.Draft)
		m.notice = "The message is in the history: ↑ brings it back."
	}
	if result.Copy {
		cmds = append(cmds, m.copyAnswer())
	}
	if result.Events != nil {
		msg.events = pump(result.Events)
		m.state = m.backend.State()
		return tea.Batch(append(cmds, listen(msg.running))...)
	}
	if result.Leave {
		m.leaving = true
	}
	cmds = append(cmds, m.ended())
	if result.Pick {
		cmds = append(cmds, m.pickConversation(result.Words))
	}
	return tea.Batch(cmds...)
}

// copyAnswer copies the newest answer to the clipboard of the terminal.
func (m *Model) copyAnswer() tea.Cmd {
	for i := len(m.blocks) - 1; i >= 0; i-- {
		if m.blocks[i].kind == answered {
			m.notice = "The newest answer is in the clipboard."
			return tea.SetClipboard(m.blocks[i].text)
		}
	}
	m.notice = "There is no answer yet."
	return nil
}

// aheadEvents bounds the events that wait for the screen.
const aheadEvents = 512

// pump reads events in a goroutine of its own; the channel is closed at their end.
func pump(events iter.Seq2[turn.Event, error]) <-chan occurrence {
	all := make(chan occurrence, aheadEvents)
	go func() {
		defer close(all)
		for event, err := range events {
			all <- occurrence{event, err}
			if err != nil {
				return
			}
		}
	}()
	return all
}

// listen waits for events, and takes those that come within a pause: the longer the answer is, the longer it takes to
// draw, and the less often it is drawn.
func listen(r *running) tea.Cmd {
	pause := drawEvery
	if r.text != nil {
		pause += time.Duration(len(r.text.text)) * drawEveryByte
	}
	return func() tea.Msg {
		first, ok := <-r.events
		if !ok {
			return happened{running: r, ended: true}
		}
		all := []occurrence{first}
		pausing := time.NewTimer(pause)
		defer pausing.Stop()
		for len(all) < aheadEvents {
			select {
			case next, ok := <-r.events:
				if !ok {
					return happened{r, all, true}
				}
				all = append(all, next)
			case <-pausing.C:
				return happened{r, all, false}
			}
		}
		return happened{r, all, false}
	}
}

// How often an answer is drawn while it comes.
const (
	drawEvery     = 30 * time.Millisecond
	drawEveryByte = time.Microsecond
)

// happened shows events of the turn.
func (m *Model) happened(msg happened) tea.Cmd {
	if m.running != msg.running {
		return nil
	}
	var cmds []tea.Cmd
	for _, one := range msg.all {
		if one.err != nil {
			m.report(one.err)
			continue
		}
		cmds = append(cmds, m.event(one.event))
	}
	if msg.ended {
		cmds = append(cmds, m.ended())
	} else {
		cmds = append(cmds, listen(msg.running))
	}
	return tea.Batch(cmds...)
}

// ended is the end of what a line began: the next line is sent.
func (m *Model) ended() tea.Cmd {
	r := m.running
	r.cancel(nil)
	r.close()
	m.running, m.questions, m.early = nil, nil, false
	m.state = m.backend.State()
	if m.leaving {
		return tea.Quit
	}
	return tea.Batch(m.count(), m.sendNext())
}

// sendNext sends the first line that waits.
func (m *Model) sendNext() tea.Cmd {
	if len(m.queue) == 0 {
		return nil
	}
	next := m.queue[0]
	m.queue = m.queue[1:]
	return m.send(next)
}

// close ends the blocks to which more text could have come.
func (r *running) close() {
	for _, b := range []*block{r.text, r.thinking} {
		if b != nil {
			b.open, b.lines = false, nil
		}
	}
	r.text, r.thinking = nil, nil
}

// event shows an event.
func (m *Model) event(event turn.Event) tea.Cmd {
	r := m.running
	switch event.Kind {
	case turn.Started:
		m.started(event)
	case turn.Planned:
		r.phase = "waiting"
		if event.Round != nil && event.Round.Model != "" {
			r.phase += " for " + term.OneLine(event.Round.Model, 40)
		}
	case turn.ReasoningDelta:
		if event.Text != "" {
			m.thinks(event.Text)
		}
	case turn.TextDelta:
		m.speaks(event.Text)
	case turn.FellBack:
		m.addNote(fmt.Sprintf("%s failed, asking another model: %s", event.Attempt.Round.Model, event.Attempt.Error.Message))
	case turn.Answered:
		r.close()
	case turn.Called:
		r.phase = "running " + term.OneLine(event.Call.Name, 40)
		r.calls[event.Call.ID] = m.add(&block{kind: called, text: callText(*event.Call)})
	case turn.Asked:
		r.phase = "waiting for your decision"
		return m.ask(event)
	case turn.Decided:
		return m.decided(event)
	case turn.ToolDone:
		if b := r.calls[event.Entry.ToolCallID]; b != nil {
			b.result = shownText(event.Entry.Content)
			if !strings.HasPrefix(b.head, refused) {
				b.head = resultHead(event.Entry)
			}
		}
	case turn.Finished:
		m.finished(event)
	case turn.Failed:
		m.failed(event)
	}
	return nil
}

// started shows the message, unless the screen has sent it.
func (m *Model) started(event turn.Event) {
	if event.Entry == nil || event.Entry.Role != continuo.User {
		return
	}
	if text := shownText(event.Entry.Content); m.running.own != nil {
		m.running.own.text = text
	} else {
		m.add(&block{kind: said, text: text})
	}
}

func (m *Model) thinks(text string) {
	r := m.running
	r.phase = "thinking"
	if r.thinking == nil {
		r.thinking = m.add(&block{kind: thought, open: true})
	}
	r.thinking.text += text
}

func (m *Model) speaks(text string) {
	r := m.running
	if text == "" {
		return
	}
	r.phase, r.answered = "answering", true
	if r.text == nil {
		r.close()
		r.text = m.add(&block{kind: answered, open: true})
	}
	r.text.text += term.Clean(text)
}

// refused begins the result of a call that may not run.
const refused = "✗ not allowed"

// decided removes the question, which another client may have answered.
func (m *Model) decided(event turn.Event) tea.Cmd {
	r := m.running
	if !event.Decision.Allowed {
		b := r.calls[event.Call.ID]
		if b == nil {
			b = m.add(&block{kind: called, text: callText(*event.Call)})
			r.calls[event.Call.ID] = b
		}
		b.head = refused
		if event.Decision.Reason != "" {
			b.head += ": " + term.OneLine(event.Decision.Reason, 200)
		}
	}
	for _, q := range m.questions {
		if q.asked.Call.ID == event.Call.ID {
			return m.remove(q)
		}
	}
	return nil
}

// finished ends an answer with a line about what it took.
func (m *Model) finished(event turn.Event) {
	r := m.running
	if !r.answered { // the answer of a turn that ended earlier comes as a whole
		m.speaks(event.Entry.Content.String())
	}
	r.close()
	if !r.answered && len(event.Entry.ToolCalls) == 0 {
		m.addNote("The answer is empty.")
	}
	if event.Entry.Round != nil {
		switch event.Entry.Round.FinishReason {
		case "length":
			m.addNote(`The answer was cut at its limit of tokens (models.NAME.max_output_tokens, or the model's own); a message such as "continue" continues it.`)
		case "content_filter":
			m.addNote("The provider's content filter ended the answer.")
		}
	}
	m.used(event)
}

// used says what a turn took.
func (m *Model) used(event turn.Event) {
	if text := usageText(event.Usage, time.Since(m.running.began)); text != "" {
		m.add(&block{kind: note, text: text})
	}
}

// usageText says what was billed.
func usageText(usage continuo.Usage, took time.Duration) string {
	if usage.InputTokens+usage.OutputTokens == 0 {
		return ""
	}
	parts := []string{inputText(int64(usage.InputTokens), int64(usage.CachedTokens)), "out " + term.Number(usage.OutputTokens)}
	if usage.ReasoningTokens > 0 {
		parts[1] += fmt.Sprintf(" (%s thinking)", term.Number(usage.ReasoningTokens))
	}
	if usage.Cost.Nano > 0 {
		parts = append(parts, CostText(usage.Cost))
	}
	return strings.Join(append(parts, fmt.Sprintf("%.1f s", took.Seconds())), " · ")
}

// inputText counts the tokens of requests, with the share of the cached prefix.
func inputText(input, cached int64) string {
	text := "in " + term.Number(input)
	if cached > 0 && input > 0 {
		text += fmt.Sprintf(" (%d %% cached)", 100*cached/input)
	}
	return text
}

// CostText formats an amount of money.
func CostText(cost continuo.Cost) string {
	sign := cost.Currency + " "
	if cost.Currency == continuo.USD {
		sign = "$"
	}
	amount := float64(cost.Nano) / 1e9
	switch {
	case amount == 0:
		return sign + "0"
	case amount < 0.01:
		return sign + strings.TrimRight(fmt.Sprintf("%.6f", amount), "0")
	default:
		return sign + fmt.Sprintf("%.2f", amount)
	}
}

// failed ends an incomplete answer.
func (m *Model) failed(event turn.Event) {
	m.running.close()
	problem := event.Entry.Error
	kept := keptText(event.Entry)
	if problem.Reason == continuo.ReasonCancelled {
		m.addNote("Stopped: " + kept + ".")
	} else {
		text := fmt.Sprintf("%s: %s; %s", problem.Reason, strings.TrimRight(problem.Message, "."), kept)
		if problem.Retryable {
			text += "; /resume continues it"
		}
		m.add(&block{kind: failure, text: text})
	}
	m.used(event)
}

// keptText describes what the log has of an interrupted answer.
func keptText(entry *continuo.Entry) string {
	switch {
	case !entry.Content.IsEmpty():
		return fmt.Sprintf("the part that arrived is kept as entry %d", entry.Seq)
	case len(entry.Error.PartialToolCalls) > 0:
		return "a tool call had begun, and was not made"
	}
	return "nothing of an answer had arrived"
}
