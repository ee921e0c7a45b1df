package chatscreen

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// Options configure a screen.
type Options struct {
	// Notes are shown first.
	Notes []string
	// Editor is the command of an external editor. Default: there is none.
	Editor string
	// Pick shows the list of conversations at once.
	Pick bool
}

// Model is the state of the screen. Update is the only method that changes it; nothing else may run meanwhile.
type Model struct {
	ctx     context.Context // of commands, which Bubble Tea calls without one
	backend Backend
	options Options

	state   State
	figures Figures
	blocks  []*block
	input   composer
	menu    menu
	picker  *picker

	width, height int
	scroll        int // lines between the shown part of the transcript and its end
	top           place
	details       bool
	noMouse       bool
	frame         int // of the sign that something runs

	ready     bool     // the entries are read: lines can be sent
	queue     []string // lines that wait for that, or for the end of the turn
	running   *running // nil while nothing runs
	questions []*question
	early     bool // the line in the composer was begun before the question
	always    map[string]bool

	warned  bool   // the next Ctrl-C leaves
	notice  string // until the next key
	leaving bool   // at the end of the turn
}

// running is a line that was taken, and the turn that it began.
type running struct {
	cancel   context.CancelCauseFunc
	events   <-chan occurrence // nil until the turn has begun
	began    time.Time
	phase    string
	stopping bool
	own      *block // the message, until the log has it
	text     *block // the answer, nil before it begins
	thinking *block
	calls    map[string]*block
	answered bool
}

// occurrence is an event of a turn, or the error that ended it.
type occurrence struct {
	event turn.Event
	err   error
}

// The messages of the screen to itself.
type (
	took struct {
		*running
		result Result
		err    error
	}
	happened struct {
		*running
		all   []occurrence
		ended bool
	}
	loaded struct {
		blocks []*block
		err    error
	}
	counted struct {
		figures Figures
		err     error
	}
	remembered []string
	opened     struct{ err error }
	edited     struct {
		text string
		err  error
	}
	tick struct{}
)

// Stop ends the turn that runs, and then the screen, as a signal from outside does.
type Stop struct{ Cause error }

// Note is a remark from outside of the screen, such as what a program wrote to standard error.
type Note string

// New makes the screen of a conversation.
func New(ctx context.Context, backend Backend, options Options) *Model {
	m := &Model{ctx: ctx, backend: backend, options: options, input: newComposer(), always: map[string]bool{}, width: 80, height: 24}
	m.state = backend.State()
	m.closeMenu()
	for _, text := range options.Notes {
		m.add(&block{kind: note, text: text})
	}
	return m
}

// Init is part of tea.Model.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.load(), m.count(), m.recall()}
	if m.options.Pick {
		cmds = append(cmds, m.pickConversation(""))
	}
	return tea.Batch(cmds...)
}

func (m *Model) add(b *block) *block {
	b.fresh = true
	m.blocks = append(m.blocks, b)
	return b
}

// load reads the conversation's newest entries.
func (m *Model) load() tea.Cmd {
	ctx, backend := m.ctx, m.backend
	return func() tea.Msg {
		entries, err := backend.Entries(ctx)
		return loaded{blocksOf(entries), err}
	}
}

func (m *Model) count() tea.Cmd {
	ctx, backend := m.ctx, m.backend
	return func() tea.Msg {
		figures, err := backend.Figures(ctx)
		return counted{figures, err}
	}
}

// recall reads what the person said before.
func (m *Model) recall() tea.Cmd {
	ctx, backend := m.ctx, m.backend
	return func() tea.Msg {
		texts, err := backend.History(ctx)
		if err != nil {
			return nil // the history then has less
		}
		return remembered(texts)
	}
}

func (m *Model) open(id string) tea.Cmd {
	ctx, backend := m.ctx, m.backend
	return func() tea.Msg { return opened{backend.Open(ctx, id)} }
}

// Update is part of tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	m.layout()
	return m, cmd
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 1), max(msg.Height, 1)
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.wheel(msg)
	case identified:
		return m.identified()
	case took:
		return m.took(msg)
	case happened:
		return m.happened(msg)
	case found:
		if m.picker == msg.picker && msg.words == m.picker.words {
			m.picker.items, m.picker.chosen, m.picker.loading = msg.items, 0, false
			m.report(msg.err)
		}
	case completed:
		m.menu.take(msg)
	case tick:
		return m.tick()
	case Stop:
		return m.stop(msg)
	case Note:
		m.addNote(string(msg))
	default:
		return m.updateRest(msg)
	}
	return nil
}

// updateRest takes the outcomes of what the screen has asked its backend to do.
func (m *Model) updateRest(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case loaded:
		return m.loaded(msg)
	case counted:
		if msg.err == nil {
			m.figures = msg.figures
		}
	case remembered:
		m.input.addPast(msg)
	case opened:
		if !m.report(msg.err) {
			return m.changed()
		}
	case edited:
		if !m.report(msg.err) {
			m.typed(func() { m.input.set(msg.text) })
		}
	case silent:
		msg.waiting = 0
	case recheck:
		if m.question() == msg.question {
			return m.look(msg.question)
		}
	case waits:
		return m.waits(msg)
	case decided:
		if msg.err != nil {
			m.addNote("That came too late: " + term.OneLine(msg.err.Error(), 200))
		}
	}
	return nil
}

// loaded shows the stored entries, and sends what was typed meanwhile.
func (m *Model) loaded(msg loaded) tea.Cmd {
	m.blocks = append(msg.blocks, m.blocks...)
	m.report(msg.err)
	if m.state.Broken != "" {
		m.addNote("The last answer was interrupted (" + m.state.Broken + "). /resume continues it.")
	}
	m.ready = true
	return m.sendNext()
}

func (m *Model) waits(msg waits) tea.Cmd {
	if m.question() != msg.question {
		return nil
	}
	if msg.still {
		return lookAgain(msg.question)
	}
	m.addNote("This was decided elsewhere, or the time for a decision ran out.")
	return m.remove(msg.question)
}

// changed shows another conversation.
func (m *Model) changed() tea.Cmd {
	m.state, m.blocks, m.figures, m.scroll, m.ready = m.backend.State(), nil, Figures{}, 0, false
	return tea.Batch(m.load(), m.count())
}

// report shows an error; false for none.
func (m *Model) report(err error) bool {
	if err == nil {
		return false
	}
	m.add(&block{kind: failure, text: err.Error()})
	m.scroll = 0
	return true
}

// addNote shows a remark; where it is the same as the one before, it is counted.
func (m *Model) addNote(text string) {
	if last := len(m.blocks) - 1; last >= 0 && m.blocks[last].kind == note && m.blocks[last].text == text {
		m.blocks[last].count++
		return
	}
	m.add(&block{kind: note, text: text})
}

// frameEvery is how often the sign that something runs moves.
const frameEvery = 120 * time.Millisecond

func nextFrame() tea.Cmd {
	return tea.Tick(frameEvery, func(time.Time) tea.Msg { return tick{} })
}

func (m *Model) tick() tea.Cmd {
	if m.running == nil {
		return nil
	}
	m.frame++
	return nextFrame()
}

// stop ends the turn and leaves.
func (m *Model) stop(msg Stop) tea.Cmd {
	m.leaving = true
	if m.running == nil {
		return tea.Quit
	}
	m.running.cancel(msg.Cause)
	return nil
}
