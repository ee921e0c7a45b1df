package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/process"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// scriptedCrew is an engine with one crew, which reports the events of its script, and records decisions.
type scriptedCrew struct {
	owner   string // of its turns
	script  []engine.CrewProgress
	holds   chan struct{} // after the script it reports nothing until it is closed; nil: the cycle ends there
	at      engine.CrewStatus
	allowed []bool
	stopped chan struct{} // closed when a client stops the cycle; nil: that fails
}

// scriptedTurns are the turns of a scriptedCrew.
type scriptedTurns struct{ *scriptedCrew }

var errUnwanted = errors.New("unexpected call")

func (c *scriptedCrew) Get(string) (*crew.Crew, error) { return nil, errUnwanted }

func (c *scriptedCrew) Send(context.Context, engine.CrewMessage) (*engine.CrewStatus, error) {
	return nil, errUnwanted
}

func (c *scriptedCrew) Status(context.Context, engine.CrewSession) (*engine.CrewStatus, error) {
	return &c.at, nil
}

func (c *scriptedCrew) Follow(ctx context.Context, _ continuo.Run, _ int64) iter.Seq2[engine.CrewProgress, error] {
	return func(yield func(engine.CrewProgress, error) bool) {
		for _, progress := range c.script {
			if !yield(progress, nil) {
				return
			}
		}
		if c.holds == nil {
			return
		}
		select {
		case <-c.holds:
		case <-ctx.Done():
			yield(engine.CrewProgress{}, ctx.Err())
		}
	}
}

func (c *scriptedCrew) Stop(context.Context, engine.CrewSession, string) (*engine.CrewStatus, error) {
	if c.stopped == nil {
		return nil, errUnwanted
	}
	close(c.stopped)
	return &c.at, nil
}

func (c *scriptedCrew) Reset(context.Context, engine.CrewSession, string) (*engine.CrewStatus, error) {
	return nil, errUnwanted
}

func (c *scriptedCrew) Restore(context.Context, engine.CrewSession, string) (*engine.CrewStatus, error) {
	return nil, errUnwanted
}

func (c *scriptedCrew) Resume(context.Context, engine.CrewSession, bool) (*engine.CrewStatus, error) {
	return nil, errUnwanted
}

func (c scriptedTurns) Get(context.Context, continuo.Conversation, string) (continuo.Turn, error) {
	return continuo.Turn{State: continuo.TurnRunning, Owner: c.owner}, nil
}

func (c scriptedTurns) Decide(_ context.Context, _ continuo.Turn, _ string, decision turn.Decision) error {
	c.allowed = append(c.allowed, decision.Allowed)
	return nil
}

// someCrew is the state of a crew of three.
func someCrew(state continuo.RunState, reason string) engine.CrewStatus {
	return engine.CrewStatus{
		Crew: "garden", SessionID: "s1", RunID: "run_0199", State: state, Reason: reason, Next: "builder",
		Roles: []engine.RoleStatus{{Name: "planner", DisplayName: "Planner"}, {Name: "builder", DisplayName: "Backend Dev"}, {Name: "reviewer", DisplayName: "Reviewer"}},
	}
}

// crewFollower is a command that follows a crew, of which out and notes are what it writes.
type crewFollower struct {
	*crewWatch
	out, notes bytes.Buffer
}

func followerOf(c *scriptedCrew, terminal, asJSON bool) *crewFollower {
	f := &crewFollower{}
	a := &app{console: &console{in: strings.NewReader(""), out: &f.out, err: &f.notes, outTerminal: terminal, paint: term.Style(terminal), width: 60}}
	t := &crewChatSession{chatSession: &chatSession{app: a, plain: !terminal}, crews: c, turns: scriptedTurns{c}, asJSON: asJSON}
	t.signals = make(chan os.Signal, 2)
	f.crewWatch = &crewWatch{crewChatSession: t, leave: func() {}}
	f.screen = t.newCrewScreen(&c.at, "Hello")
	return f
}

// followed follows a cycle to its end.
func (f *crewFollower) followed(t *testing.T) error {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	f.leave = leave
	defer leave()
	return f.follow(ctx, &f.crews.(*scriptedCrew).at)
}

// answerEvents makes the steps of a role's turn that says something, in pieces.
func answerEvents(seq int64, role string, pieces ...string) []engine.CrewProgress {
	turnID := "turn_" + role + term.Number(seq)
	var steps []engine.CrewProgress
	for _, piece := range pieces {
		steps = append(steps, engine.CrewProgress{Role: role, Turn: &turn.Event{Kind: turn.TextDelta, TurnID: turnID, Text: piece}})
	}
	entry := answered(seq, role, strings.Join(pieces, ""))
	for _, kind := range []turn.Kind{turn.Answered, turn.Finished} {
		steps = append(steps, engine.CrewProgress{Role: role, Turn: &turn.Event{Kind: kind, TurnID: turnID, Entry: entry}}, engine.CrewProgress{Entry: entry})
	}
	return steps
}

func answered(seq int64, role, text string) *continuo.Entry {
	return &continuo.Entry{
		Seq: seq, Role: continuo.Assistant, Content: continuo.Text(text), NodeID: role, Author: &continuo.Author{RoleName: role},
		RunEvent: &continuo.RunEvent{Kind: continuo.RunNodeFinished},
	}
}

// The program ends as the cycle ends.
func TestWatchedCycleEnds(t *testing.T) {
	for state, want := range map[continuo.RunState]int{continuo.RunFinished: 0, continuo.RunFailed: 1, continuo.RunStopped: 1, continuo.RunRunning: 130} {
		f := followerOf(&scriptedCrew{at: someCrew(state, "no role has anything to add")}, false, false)
		err := f.followed(t)
		if got := exitCode(err); got != want {
			t.Errorf("a cycle that is %s ends with %d, want %d (%v)", state, got, want, err)
		}
		if state == continuo.RunFinished && !strings.Contains(f.notes.String(), "The cycle has ended: no role has anything to add.") {
			t.Errorf("the end is reported as %q", f.notes.String())
		}
		if state == continuo.RunFailed && !strings.HasSuffix(err.Error(), "continuo crew resume garden --session s1") {
			t.Errorf("the error is %q", err)
		}
	}
}

// In a pipe, what the roles say goes out, each once and below its name, and what else there is apart from it. No line
// of what is said can be taken for a name, and a placeholder is said in words.
func TestSpeechInAPipe(t *testing.T) {
	script := []engine.CrewProgress{{Entry: &continuo.Entry{Seq: 1, Role: continuo.User, Content: continuo.Text("Hello")}}}
	script = append(script, answerEvents(3, "planner", "..", ".. and so on\n", "Reviewer:\nI agree.")...)
	script = append(script, answerEvents(5, "builder", "..", "...\n")...)
	script = append(
		script,
		engine.CrewProgress{Entry: &continuo.Entry{Seq: 6, Role: continuo.User, Content: continuo.Text("Hello"), Author: &continuo.Author{DisplayName: "Ada"}}},
		engine.CrewProgress{Entry: answered(7, "reviewer", "Well\x1b[2J done.")},
		engine.CrewProgress{Entry: answered(8, "planner", continuo.Placeholder)},
		engine.CrewProgress{Entry: &continuo.Entry{
			Seq: 9, Role: continuo.System, Hidden: true, NodeID: "builder", RunEvent: &continuo.RunEvent{Kind: continuo.CrewRoleFailed, Reason: "the program ended\nwith 1"},
		}},
	)
	f := followerOf(&scriptedCrew{script: script, at: someCrew(continuo.RunFinished, "the end")}, false, false)
	if err := f.followed(t); err != nil {
		t.Fatal(err)
	}
	want := "Planner:\n  .... and so on\n  Reviewer:\n  I agree.\n\nUser (Ada):\n  Hello\n\nReviewer:\n  Well\x1b[2J done.\n\n"
	if got := f.out.String(); got != want {
		t.Errorf("the roles say\n%s\nwant\n%s", got, want)
	}
	want = "Backend Dev has nothing to add\nPlanner has nothing to add\n✗ Backend Dev did not answer: the program ended with 1\nThe cycle has ended: the end.\n"
	if got := f.notes.String(); got != want {
		t.Errorf("apart from it the output has\n%s\nwant\n%s", got, want)
	}
}

// In a terminal the line of a silent role says for how long, and goes away when it speaks.
func TestSilenceInATerminal(t *testing.T) {
	f := followerOf(&scriptedCrew{at: someCrew(continuo.RunRunning, "")}, true, false)
	s := f.screen.(*crewTextScreen)
	took := func(progress engine.CrewProgress) {
		t.Helper()
		if err := s.update(t.Context(), progress); err != nil {
			t.Fatal(err)
		}
	}
	took(engine.CrewProgress{Entry: &continuo.Entry{Role: continuo.System, Hidden: true, NodeID: "builder", RunEvent: &continuo.RunEvent{Kind: continuo.RunNodeBegan}}})
	s.tick(s.sign)
	s.tick(s.sign.Add(3 * time.Second))
	if got := f.out.String(); !strings.HasSuffix(got, "\r\x1b[K\x1b[2mBackend Dev is speaking… 3 s\x1b[0m") {
		t.Errorf("silence is shown as %q", got)
	}
	f.out.Reset()
	for _, step := range answerEvents(3, "builder", "It is ", "done.") {
		took(step)
		s.tick(s.sign.Add(3 * time.Second))
	}
	s.tick(s.sign.Add(3 * time.Second)) // no role speaks now
	text, ok := strings.CutPrefix(f.out.String(), "\r\x1b[K")
	if text = strings.ReplaceAll(text, "\x1b[2mBackend Dev is speaking… 3 s\x1b[0m\r\x1b[K", ""); !ok || !strings.HasSuffix(text, "\n  It is done.\n\n") {
		t.Errorf("what it says is shown as %q", f.out.String())
	}
}

// A cycle's reason is shown whole, in several lines where the terminal is narrower.
func TestEndInATerminal(t *testing.T) {
	reason := "no role has anything to add; failed: Backend Dev (" + strings.Repeat("its program ended with 1 ", 5) + "at the last)"
	f := followerOf(&scriptedCrew{at: someCrew(continuo.RunFinished, reason)}, true, false)
	if err := f.followed(t); err != nil {
		t.Fatal(err)
	}
	if shown := strings.ReplaceAll(f.out.String(), "\x1b[0m\n\x1b[2m", " "); !strings.Contains(shown, "The cycle has ended: "+reason+".") {
		t.Errorf("the end is shown as %q", shown)
	}
}

// Ctrl-C stops what this process carries out, and a second one leaves; what another one carries out is left alone.
func TestCtrlCStopsACycle(t *testing.T) {
	ours := &scriptedCrew{owner: process.Self() + "#keep_1", at: someCrew(continuo.RunStopped, "a person stopped it"), stopped: make(chan struct{})}
	ours.holds, ours.at.TurnID = ours.stopped, "turn_1"
	f := followerOf(ours, false, false)
	f.signals <- os.Interrupt
	err := f.followed(t)
	if stopped := new(crewStopped); !errors.As(err, &stopped) || exitCode(err) != 130 || !strings.HasSuffix(err.Error(), "continuo crew resume garden --session s1") {
		t.Errorf("a cycle of this process ends with %v", err)
	}

	deaf := &scriptedCrew{at: someCrew(continuo.RunRunning, ""), holds: make(chan struct{}), stopped: make(chan struct{})}
	f = followerOf(deaf, false, false)
	f.signals <- os.Interrupt
	f.signals <- os.Interrupt
	if err := f.followed(t); exitCode(err) != 130 || !strings.Contains(err.Error(), "left the crew before it had stopped") {
		t.Errorf("a cycle that does not stop ends with %v", err)
	}

	other := &scriptedCrew{owner: "elsewhere#keep_1", at: someCrew(continuo.RunRunning, ""), holds: make(chan struct{})}
	other.at.TurnID = "turn_1"
	f = followerOf(other, false, false)
	f.signals <- os.Interrupt
	if err := f.followed(t); exitCode(err) != 130 || !strings.Contains(err.Error(), "continues without this program") {
		t.Errorf("a cycle of another process ends with %v", err)
	}
}

// Calls are denied without a terminal to ask in, except those of turns that run elsewhere.
func TestCallsOfACrewInAPipe(t *testing.T) {
	for owner, denials := range map[string]int{process.Self() + "#keep_1": 1, "elsewhere#keep_1": 0} {
		c := &scriptedCrew{owner: owner, at: someCrew(continuo.RunFinished, "the end")}
		c.script = []engine.CrewProgress{{Role: "builder", Turn: &turn.Event{Kind: turn.Asked, TurnID: "turn_1", Call: &continuo.ToolCall{ID: "c", Name: "fs.write"}}}}
		if err := followerOf(c, false, false).followed(t); err != nil || len(c.allowed) != denials || denials == 1 && c.allowed[0] {
			t.Errorf("a call of %s: %v, allowed %v", owner, err, c.allowed)
		}
	}
}

// For a program each line is one object, and the last one is the end.
func TestCycleAsJSON(t *testing.T) {
	status := someCrew(continuo.RunFinished, "the end")
	script := append(answerEvents(3, "planner", "Hello."), engine.CrewProgress{Entry: answered(4, "builder", continuo.Placeholder), Status: &status})
	f := followerOf(&scriptedCrew{script: script, at: status}, false, true)
	if err := f.followed(t); err != nil {
		t.Fatal(err)
	}
	var types []string
	for line := range strings.Lines(f.out.String()) {
		var one struct {
			Type   string             `json:"type"`
			Status *engine.CrewStatus `json:"status"`
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		types = append(types, one.Type)
	}
	if got := strings.Join(types, " "); got != "entry entry entry status end" || f.notes.Len() > 0 {
		t.Errorf("the lines are %s, and the notes are %q", got, f.notes.String())
	}
}
