package chatscreen

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// fake is a conversation whose turns the test plays.
type fake struct {
	mu      sync.Mutex
	state   State
	entries []continuo.Entry
	lines   []string // that were taken
	results map[string]Result
	decided []turn.Decision
	history []string
	choices []Choice
	opened  string
	waits   bool
}

func (f *fake) State() State { return f.state }
func (f *fake) Entries(context.Context) ([]continuo.Entry, error) {
	return f.entries, nil
}

func (f *fake) Take(ctx context.Context, line string, _ int) (Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
	result, ok := f.results[line]
	if !ok {
		return Result{}, errors.New("nothing is known of " + line)
	}
	return result, nil
}
func (f *fake) Open(_ context.Context, id string) error { f.opened = id; return nil }
func (f *fake) Decide(_ context.Context, _ turn.Event, decision turn.Decision) error {
	f.decided = append(f.decided, decision)
	return nil
}
func (f *fake) Waits(context.Context, turn.Event) bool                  { return f.waits }
func (f *fake) Figures(context.Context) (Figures, error)                { return Figures{}, nil }
func (f *fake) History(context.Context) ([]string, error)               { return f.history, nil }
func (f *fake) Conversations(context.Context, string) ([]Choice, error) { return f.choices, nil }
func (f *fake) Complete(_ context.Context, line string) []Completion {
	if line == "/" {
		return slices.Repeat([]Completion{{Text: "/resume", Label: "/resume"}}, menuLines+12)
	}
	if strings.HasPrefix("/resume", line) {
		return []Completion{{Text: "/resume", Label: "/resume", Help: "continue"}}
	}
	return nil
}

// turnOf is a turn whose events the test sends; closing the channel ends it.
func turnOf() (chan turn.Event, Result) {
	events := make(chan turn.Event, 100)
	return events, Result{Events: func(yield func(turn.Event, error) bool) {
		for event := range events {
			if !yield(event, nil) {
				return
			}
		}
	}}
}

// person is a person before a screen, in a bubble of synctest.
type person struct {
	t     *testing.T
	m     *Model
	queue chan tea.Msg
	quit  bool
	asked int // requests to the terminal that were not answered
}

func at(t *testing.T, f *fake) *person {
	t.Helper()
	p := &person{t: t, m: New(t.Context(), f, Options{}), queue: make(chan tea.Msg, 1000)}
	t.Cleanup(func() { time.Sleep(time.Minute) }) // the timers that still run, in the time of the bubble
	p.does(p.m.Init())
	p.settle()
	return p
}

// does runs a command beside the test, as Bubble Tea does.
func (p *person) does(cmd tea.Cmd) {
	if cmd != nil {
		go func() { p.queue <- cmd() }()
	}
}

// settle handles messages until every command waits for events, or longer than the screen waits to draw.
func (p *person) settle() {
	for quiet := false; ; {
		synctest.Wait()
		select {
		case msg := <-p.queue:
			p.gets(msg)
			quiet = false
		default:
			if quiet {
				return
			}
			time.Sleep(drawEvery + time.Millisecond)
			quiet = true
		}
	}
}

func (p *person) gets(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
	case tea.QuitMsg:
		p.quit = true
	case tea.RawMsg:
		p.asked++
	case tea.BatchMsg:
		for _, cmd := range msg {
			p.does(cmd)
		}
	default:
		_, cmd := p.m.Update(msg)
		p.does(cmd)
	}
}

// sends a message and handles what follows.
func (p *person) sends(msg tea.Msg) {
	p.gets(msg)
	p.settle()
}

// keys are those with a name; every other text is typed.
var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "shift+enter": {Code: tea.KeyEnter, Mod: tea.ModShift},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl}, "ctrl+t": {Code: 't', Mod: tea.ModCtrl},
	"ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "tab": {Code: tea.KeyTab}, "esc": {Code: tea.KeyEscape},
	"backspace": {Code: tea.KeyBackspace}, "pgup": {Code: tea.KeyPgUp}, "ctrl+end": {Code: tea.KeyEnd, Mod: tea.ModCtrl},
}

func (p *person) types(all ...string) {
	p.t.Helper()
	for _, text := range all {
		if key, ok := keys[text]; ok {
			p.sends(key)
			continue
		}
		for _, r := range text {
			p.sends(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// answers is the terminal's answer to a request.
func (p *person) terminalAnswers() {
	p.t.Helper()
	if p.asked == 0 {
		p.t.Fatal("the terminal was asked nothing")
	}
	p.asked--
	p.sends(identified{1})
}

// sees is the screen as text.
func (p *person) sees() string { return ansi.Strip(p.m.View().Content) }

func (p *person) wants(parts ...string) {
	p.t.Helper()
	for _, part := range parts {
		if !strings.Contains(p.sees(), part) {
			p.t.Errorf("the screen lacks %q:\n%s", part, p.sees())
		}
	}
}

func (p *person) lacks(part string) {
	p.t.Helper()
	if strings.Contains(p.sees(), part) {
		p.t.Errorf("the screen has %q:\n%s", part, p.sees())
	}
}

// during runs a test in a bubble.
func during(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, do) })
}

func asked(id string) turn.Event {
	return turn.Event{Kind: turn.Asked, TurnID: "turn_1", Call: &continuo.ToolCall{ID: id, Name: "fs.list", Arguments: `{"path":"` + id + `"}`}}
}

func TestInterrupt(t *testing.T) {
	during(t, "clears, then stops, then leaves", func(t *testing.T) {
		events, result := turnOf()
		p := at(t, &fake{results: map[string]Result{"hello": result}})
		p.types("hello", "enter", "a draft", "ctrl+c")
		if r := p.m.running; r == nil || r.stopping || !p.m.input.isEmpty() {
			t.Fatalf("the first Ctrl-C did not only clear the line: %+v", r)
		}
		p.types("ctrl+c")
		if !p.m.running.stopping || p.quit {
			t.Fatal("the second Ctrl-C did not only stop the answer")
		}
		close(events)
		p.settle()
		p.types("ctrl+c")
		p.wants("Ctrl-C again leaves")
		if p.quit {
			t.Fatal("a Ctrl-C that came just after the answer left")
		}
		p.types("x", "ctrl+c", "ctrl+c")
		if p.quit {
			t.Fatal("another key in between was forgotten")
		}
		p.types("up")
		if got := p.m.input.text(); got != "x" {
			t.Errorf("the cleared line came back as %q", got)
		}
		p.types("ctrl+c", "ctrl+c", "ctrl+c")
		if !p.quit {
			t.Error("it did not leave")
		}
	})
	during(t, "gives back what waited", func(t *testing.T) {
		events, result := turnOf()
		f := &fake{results: map[string]Result{"hello": result}}
		p := at(t, f)
		p.types("hello", "enter", "one", "enter", "two", "enter")
		p.wants("next: one", "next: two")
		p.types("ctrl+c")
		close(events)
		p.settle()
		if got := p.m.input.text(); got != "one\ntwo" || len(f.lines) != 1 {
			t.Errorf("the lines that waited became %q, and %q were sent", got, f.lines)
		}
	})
}

// What was typed before the terminal showed a question is no answer to it, wherever it was when the question came.
func TestTypedAhead(t *testing.T) {
	begin := func(t *testing.T) (*person, *fake, chan turn.Event) {
		events, result := turnOf()
		f := &fake{waits: true, results: map[string]Result{"hello": result}}
		p := at(t, f)
		p.types("hello", "enter")
		return p, f, events
	}
	during(t, "in the line", func(t *testing.T) {
		p, f, events := begin(t)
		p.types("y")
		events <- asked("first")
		p.settle()
		p.terminalAnswers()
		p.terminalAnswers()
		p.wants("May this run?", "begun before the question")
		p.types("enter")
		if len(f.decided) != 0 {
			t.Fatalf("it was taken as %+v", f.decided)
		}
		p.wants("next: y", "kept as your next message")
		p.types("n", "enter")
		if slices.Contains(p.m.input.past, "n") {
			t.Error("the answer is in the history")
		}
		if want := []turn.Decision{{}}; !reflect.DeepEqual(f.decided, want) {
			t.Errorf("decided %+v, want %+v", f.decided, want)
		}
		close(events)
	})
	during(t, "on its way", func(t *testing.T) {
		p, f, events := begin(t)
		events <- asked("first")
		p.settle()
		p.types("y", "enter")
		p.terminalAnswers()
		p.types("y", "enter") // may be older than the picture
		p.types("y")
		p.terminalAnswers()
		p.types("enter")
		if len(f.decided) != 0 {
			t.Fatalf("it was taken as %+v", f.decided)
		}
		p.types("y", "enter")
		if want := []turn.Decision{{Allowed: true}}; !reflect.DeepEqual(f.decided, want) {
			t.Errorf("decided %+v, want %+v", f.decided, want)
		}
		close(events)
	})
	during(t, "chosen from a list that was over the question", func(t *testing.T) {
		p, f, events := begin(t)
		f.history = []string{"y"}
		p.sends(remembered(f.history))
		p.types("ctrl+r", "y")
		events <- asked("first")
		p.settle()
		for p.asked > 0 {
			p.terminalAnswers()
		}
		p.lacks("May this run?")
		p.types("enter", "enter")
		if len(f.decided) != 0 {
			t.Fatalf("it was taken as %+v", f.decided)
		}
		p.wants("May this run?", "next: y")
		p.terminalAnswers()
		p.terminalAnswers()
		p.types("y", "enter")
		if want := []turn.Decision{{Allowed: true}}; !reflect.DeepEqual(f.decided, want) {
			t.Errorf("decided %+v, want %+v", f.decided, want)
		}
		close(events)
	})
	during(t, "written in an editor, or taken back", func(t *testing.T) {
		for _, put := range []func(*person){
			func(p *person) { p.types("up") },
			func(p *person) { p.sends(edited{text: "y"}) },
		} {
			p, f, events := begin(t)
			p.types("y", "enter")
			events <- asked("first")
			p.settle()
			put(p)
			p.terminalAnswers()
			p.terminalAnswers()
			p.types("enter")
			if len(f.decided) != 0 {
				t.Errorf("it was taken as %+v", f.decided)
			}
			p.wants("May this run?", "next: y")
			p.m.queue = nil
			close(events)
			p.settle()
		}
	})
	during(t, "cleared, it is begun again", func(t *testing.T) {
		p, f, events := begin(t)
		p.types("yes and")
		events <- asked("first")
		p.settle()
		p.terminalAnswers()
		p.terminalAnswers()
		p.types("ctrl+u", "rather not", "enter")
		if want := []turn.Decision{{Reason: "rather not"}}; !reflect.DeepEqual(f.decided, want) {
			t.Errorf("decided %+v, want %+v", f.decided, want)
		}
		close(events)
	})
	during(t, "the next question", func(t *testing.T) {
		p, f, events := begin(t)
		events <- asked("first")
		events <- asked("second")
		p.settle()
		p.terminalAnswers()
		p.terminalAnswers()
		p.wants("1 more question")
		p.types("y", "enter", "y", "enter")
		if len(f.decided) != 1 {
			t.Fatalf("decided %+v before the second question was seen", f.decided)
		}
		p.terminalAnswers()
		p.terminalAnswers()
		p.types("a", "enter")
		events <- asked("third")
		p.settle()
		if want := []turn.Decision{{Allowed: true}, {Allowed: true}, {Allowed: true}}; !reflect.DeepEqual(f.decided, want) {
			t.Errorf("decided %+v, want %+v", f.decided, want)
		}
		close(events)
	})
	during(t, "a terminal that answers nothing", func(t *testing.T) {
		p, f, events := begin(t)
		events <- asked("first")
		p.settle()
		p.types("n", "enter")
		time.Sleep(patience + time.Second)
		p.settle()
		p.types("y", "enter")
		if want := []turn.Decision{{Allowed: true}}; !reflect.DeepEqual(f.decided, want) {
			t.Errorf("decided %+v, want %+v", f.decided, want)
		}
		close(events)
	})
	during(t, "decided elsewhere", func(t *testing.T) {
		p, f, events := begin(t)
		events <- asked("first")
		p.settle()
		f.waits = false
		time.Sleep(2 * askAgain)
		p.settle()
		p.wants("decided elsewhere")
		p.lacks("May this run?")
		close(events)
	})
}

func TestComposer(t *testing.T) {
	during(t, "several lines", func(t *testing.T) {
		f := &fake{results: map[string]Result{}}
		p := at(t, f)
		p.types("one", "alt+enter", "two", "shift+enter", `three\`, "enter", "four", "enter")
		if want := []string{"one\ntwo\nthree\nfour"}; !reflect.DeepEqual(f.lines, want) {
			t.Errorf("sent %q, want %q", f.lines, want)
		}
	})
	during(t, "a text of several rows is shown from its beginning, as far as there is room", func(t *testing.T) {
		p := at(t, &fake{})
		p.types("begins " + strings.Repeat("and goes on ", 12) + "ends")
		p.wants("› begins and", "ends\n")
		p.types("alt+enter", "a second line")
		p.wants("› begins and", "ends\n", "a second line")
		p.types("ctrl+c", "alt+enter", "x")
		p.lacks("begins")
		p.types("ctrl+u", "backspace", strings.Repeat("many rows ", 200), "ends")
		if got := p.m.input.area.Height(); got != 8 {
			t.Errorf("the text has %d rows of a screen of 24", got)
		}
		p.wants("ends\n")
	})
	during(t, "a pasted text is sent as it was", func(t *testing.T) {
		long := strings.Repeat("\tif x { y() }\n", 300) + "end"
		f := &fake{results: map[string]Result{}}
		p := at(t, f)
		p.types("see: ")
		p.sends(tea.PasteMsg{Content: long})
		p.wants("[pasted 1: 301 lines")
		p.types(" ok", "enter", "up")
		p.types("enter")
		if want := []string{"see: " + long + " ok", "see: " + long + " ok"}; !reflect.DeepEqual(f.lines, want) {
			t.Errorf("sent %d characters, want %d", len(strings.Join(f.lines, "")), 2*len(want[0]))
		}
		p.sends(tea.PasteMsg{Content: long})
		p.types("backspace", "short", "enter")
		if got := f.lines[2]; got != "short" {
			t.Errorf("the mark was not removed as a whole: %q", got)
		}
	})
	during(t, "history", func(t *testing.T) {
		f := &fake{history: []string{"newest", "older\nof two lines", "oldest"}, results: map[string]Result{}}
		p := at(t, f)
		p.types("draft", "up", "up")
		if got := p.m.input.text(); got != "older\nof two lines" {
			t.Errorf("up twice: %q", got)
		}
		p.types("down", "down")
		if got := p.m.input.text(); got != "draft" {
			t.Errorf("and back: %q", got)
		}
		p.types("ctrl+u", "ctrl+r", "old")
		p.wants("Earlier messages", "oldest", "older of two lines")
		p.lacks("newest")
		p.types("down", "enter")
		if got := p.m.input.text(); got != "oldest" {
			t.Errorf("chosen: %q", got)
		}
	})
	during(t, "a message that is sent again is in the history once", func(t *testing.T) {
		f := &fake{history: []string{"again"}, results: map[string]Result{}}
		p := at(t, f)
		p.types("again", "enter", "other", "enter", "again", "enter", "up", "up", "up")
		if got := p.m.input.past; !slices.Equal(got, []string{"again", "other"}) {
			t.Errorf("the history is %q", got)
		}
	})
	during(t, "a message to edit replaces nothing that was typed meanwhile", func(t *testing.T) {
		f := &fake{results: map[string]Result{"/edit": {Draft: "before"}}}
		p := at(t, f)
		p.types("/edit")
		p.gets(keys["enter"]) // its outcome is still to come
		p.gets(tea.KeyPressMsg{Code: 'x', Text: "x"})
		p.settle()
		if got := p.m.input.text(); got != "x" {
			t.Errorf("the line is %q", got)
		}
		p.types("up")
		if got := p.m.input.text(); got != "before" {
			t.Errorf("the history has %q", got)
		}
		p.types("ctrl+u", "/edit", "enter")
		if got := p.m.input.text(); got != "before" {
			t.Errorf("the line is %q", got)
		}
	})
	during(t, "Tab completes commands", func(t *testing.T) {
		f := &fake{results: map[string]Result{"/resume": {}}}
		p := at(t, f)
		p.types("/re")
		p.wants("/resume", "continue")
		p.types("tab", "enter")
		if want := []string{"/resume"}; !reflect.DeepEqual(f.lines, want) {
			t.Errorf("sent %q, want %q", f.lines, want)
		}
	})
}

func TestTurn(t *testing.T) {
	during(t, "an answer with thinking, a tool and a price", func(t *testing.T) {
		events, result := turnOf()
		p := at(t, &fake{results: map[string]Result{"hello": result}})
		p.types("hello", "enter")
		for _, event := range []turn.Event{
			{Kind: turn.Started, Entry: &continuo.Entry{Role: continuo.User, Content: continuo.Text("hello")}},
			{Kind: turn.Planned, Round: &continuo.Round{Model: "m-1"}},
			{Kind: turn.ReasoningDelta, Text: "Hm, let me see."},
			{Kind: turn.TextDelta, Text: "I **look** around \x1b[2J."},
			{Kind: turn.Answered},
			{Kind: turn.Called, Call: asked("a").Call},
			{Kind: turn.ToolDone, Entry: &continuo.Entry{Role: continuo.Tool, ToolCallID: "a", Content: continuo.Text("one\ntwo"), Chars: 7}},
			{Kind: turn.TextDelta, Text: "Done."},
		} {
			events <- event
		}
		p.settle()
		p.wants("› hello", "thought, 4 words", "I look around ␛[2J.", `→ fs.list({"path":"a"})`, "← 7 characters", "Done.", "answering")
		p.types("ctrl+t")
		p.wants("Hm, let me see.", "    one")
		usage := continuo.Usage{InputTokens: 1234, CachedTokens: 1000, OutputTokens: 56, Cost: continuo.Cost{Nano: 1_500_000, Currency: continuo.USD}}
		events <- turn.Event{Kind: turn.Finished, Entry: &continuo.Entry{Role: continuo.Assistant}, Usage: usage}
		close(events)
		p.settle()
		p.wants("in 1 234 (81 % cached) · out 56 · $0.0015")
		if n := strings.Count(p.sees(), "› hello"); n != 1 {
			t.Errorf("the message is shown %d times:\n%s", n, p.sees())
		}
	})
	during(t, "what is sent meanwhile waits, and can be edited again", func(t *testing.T) {
		events, result := turnOf()
		close(events)
		held, first := turnOf()
		f := &fake{results: map[string]Result{"one": first, "two!": result}}
		p := at(t, f)
		p.types("one", "enter", "two", "enter", "up", "!", "enter")
		p.wants("next: two!")
		close(held)
		p.settle()
		if want := []string{"one", "two!"}; !reflect.DeepEqual(f.lines, want) {
			t.Errorf("sent %q, want %q", f.lines, want)
		}
	})
	during(t, "what the person has scrolled to stays in sight", func(t *testing.T) {
		events, result := turnOf()
		p := at(t, &fake{results: map[string]Result{"hello": result}})
		p.types("hello", "enter")
		text := func(from, to int) (text string) {
			for i := from; i <= to; i++ {
				text += fmt.Sprintf("Paragraph %d is here, with words that fill more than half of a line.\n\n", i)
			}
			return text
		}
		first := func() string { return strings.TrimSpace(strings.Join(strings.Split(p.sees(), "\n")[1:4], " ")) }
		says := func(from, to int) {
			events <- turn.Event{Kind: turn.TextDelta, Text: text(from, to)}
			p.settle()
			time.Sleep(time.Second) // a long answer is drawn less often
			p.settle()
		}
		says(1, 40)
		p.types("pgup", "pgup")
		before := first()
		says(41, 60)
		if first() != before {
			t.Errorf("first was %q, and after more of the answer it is %q", before, first())
		}
		words := strings.Join(strings.Fields(before)[:2], " ")
		for _, size := range []tea.WindowSizeMsg{{Width: 40, Height: 24}, {Width: 120, Height: 30}, {Width: 80, Height: 24}} {
			p.sends(size)
			p.wants(words)
		}
		p.sends(keys["ctrl+end"])
		says(61, 61)
		p.wants("Paragraph 61")
		close(events)
		p.settle()
	})
	during(t, "an answer without a word is said to be empty, and a command is apart from what an answer took", func(t *testing.T) {
		events, result := turnOf()
		p := at(t, &fake{results: map[string]Result{"hello": result, "/context": {Output: "4 messages"}}})
		p.types("hello", "enter")
		events <- turn.Event{Kind: turn.Finished, Entry: &continuo.Entry{Role: continuo.Assistant}, Usage: continuo.Usage{InputTokens: 7}}
		close(events)
		p.settle()
		p.types("/context", "enter")
		p.wants("The answer is empty.\nin 7", "\n\n/context\n4 messages")
	})
	during(t, "what an upstream says ends in one period", func(t *testing.T) {
		events, result := turnOf()
		p := at(t, &fake{results: map[string]Result{"hello": result}})
		p.types("hello", "enter")
		failure := &continuo.TurnError{Reason: "upstream", Message: "it answered 400: try later."}
		events <- turn.Event{Kind: turn.Failed, Entry: &continuo.Entry{Role: continuo.Assistant, Error: failure}}
		close(events)
		p.settle()
		p.wants("upstream: it answered 400: try later; nothing of an answer had arrived")
	})
	during(t, "a list that is cut says how much there is", func(t *testing.T) {
		p := at(t, &fake{})
		p.types("/")
		p.settle()
		p.wants("12 more")
		if strings.Contains(p.sees(), "mores") {
			t.Error(p.sees())
		}
	})
	during(t, "a long title leaves room for what else is known", func(t *testing.T) {
		title := strings.Repeat("An earlier question ", 4)
		p := at(t, &fake{results: map[string]Result{"/open": {Pick: true}}, choices: []Choice{
			{ID: "1", Name: "a-name-of-a-conversation", Title: title, Entries: 12, State: "failed"}, {ID: "conv_2", Name: "conv_2", Title: "Another", Entries: 2},
		}})
		p.types("/open", "enter")
		p.settle()
		p.wants("An earlier question", "…", "· a-name-of-a-conversation · 12 entries · failed", "Another · 2 entries")
		p.lacks("conv_2")
	})
	during(t, "one remark per cause", func(t *testing.T) {
		p := at(t, &fake{})
		for range 67004 {
			p.m.addNote("it failed")
		}
		p.wants("it failed (×67004)")
		if len(p.m.blocks) != 1 {
			t.Errorf("there are %d blocks", len(p.m.blocks))
		}
	})
}

// The screen has the size of the terminal, at any size.
func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, result := turnOf()
		text := "A **long** line of 日本語 text, `code` and a [link](https://example.com/path).\n\n```go\nfunc f() { return strings.Repeat(\"x\", 100) }\n```\n\n| a | b | c |\n|---|---|---|\n| one two three | four five six | seven eight |\n"
		f := &fake{waits: true, state: State{Title: "A title that is long", Model: "a-model-name", Mode: "agent", Agent: "ada"}, results: map[string]Result{"go on": result}}
		p := at(t, f)
		p.types("go on", "enter", "/re")
		events <- turn.Event{Kind: turn.TextDelta, Text: strings.Repeat(text, 3)}
		events <- turn.Event{Kind: turn.Called, Call: asked("a").Call}
		events <- asked("a")
		p.settle()
		for width := 1; width <= 200; width++ {
			for _, height := range []int{1, 2, 4, 7, 12, 24, 50} {
				p.sends(tea.WindowSizeMsg{Width: width, Height: height})
				lines := strings.Split(p.m.View().Content, "\n")
				if len(lines) != height {
					t.Fatalf("%d×%d: %d lines:\n%s", width, height, len(lines), p.sees())
				}
				for _, line := range lines {
					if got := ansi.StringWidth(line); got > width && width > 1 {
						t.Fatalf("%d×%d: a line of %d columns: %q", width, height, got, line)
					}
				}
			}
		}
		close(events)
	})
}
