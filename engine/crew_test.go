package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/secret"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// threeRoleCrew is a crew of an agent that remembers and can load what it knew, one that cannot, and a model.
const threeRoleCrew = `
id: trio
roles:
  - {role_name: ann, display_name: Ann, connector: loads, system_prompt: You are Ann.}
  - {role_name: bob, display_name: Bob, connector: forgets, system_prompt: You are Bob.}
  - {role_name: cid, display_name: Cid, connector: model, model: plain, system_prompt: You are Cid.}
`

// crewSource is a source of crews in memory.
type crewSource map[string]*crew.Crew

func newCrewSource(t *testing.T, texts ...string) crewSource {
	t.Helper()
	b := crewSource{}
	for _, text := range texts {
		c, err := crew.Parse("test.yaml", []byte(text), crew.Known{Any: true})
		if err != nil {
			t.Fatal(err)
		}
		b[c.ID] = c
	}
	return b
}

func (b crewSource) Crew(id string) (*crew.Crew, error) {
	if found := b[id]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("crew %q: %w", id, continuo.ErrNotFound)
}

func (b crewSource) Crews() ([]*crew.Crew, error) {
	var all []*crew.Crew
	for _, c := range b {
		all = append(all, c)
	}
	return all, nil
}

// rolePrompt is what a role was sent, once.
type rolePrompt struct {
	role, session string
	text          string // all of it: system messages, and the prompt
}

// scriptedRoles answers for the roles of a crew, by a function. It is shared by all agents and models of a test, and
// outlives the programs that use it.
type scriptedRoles struct {
	answer func(rolePrompt) (string, error)
	// during happens before the answer of a role comes; nil for nothing.
	during func(rolePrompt)
	// timesOut says that a role does not answer before its time is up; nil for nobody.
	timesOut func(rolePrompt) bool

	mu             sync.Mutex
	received       []rolePrompt
	sessions       map[string]bool // that an agent could load
	sessionsOpened int
	startError     func() error // why an agent cannot be started; nil for it can
	openSessions   []*fakeRole
}

func (s *scriptedRoles) receive(ctx context.Context, p rolePrompt) (string, error) {
	s.mu.Lock()
	s.received = append(s.received, p)
	during, answer, hangs := s.during, s.answer, s.timesOut
	s.mu.Unlock()
	if hangs != nil && hangs(p) {
		<-ctx.Done()
		return "", nil
	}
	if during != nil {
		during(p)
	}
	return answer(p)
}

func (s *scriptedRoles) prompts(role string) []rolePrompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []rolePrompt
	for _, p := range s.received {
		if p.role == role {
			found = append(found, p)
		}
	}
	return found
}

// fakeRole answers for a role: a model, an agent, or a session of an agent.
type fakeRole struct {
	script *scriptedRoles
	name   string
	loads  bool

	id     string // of a session
	loaded bool
	mu     sync.Mutex
	dead   bool
}

func (p *fakeRole) Info() model.Info {
	return model.Info{Provider: "test", Name: p.name, Protocol: model.ProtocolPrompt}
}

// fakeAgent is a fakeRole that opens sessions.
type fakeAgent struct{ *fakeRole }

func (a fakeAgent) Open(_ context.Context, id string) (model.Session, error) {
	a.script.mu.Lock()
	defer a.script.mu.Unlock()
	if a.script.startError != nil {
		if err := a.script.startError(); err != nil {
			return nil, err
		}
	}
	if a.script.sessions == nil {
		a.script.sessions = map[string]bool{}
	}
	opened := &fakeRole{script: a.script, name: a.name, id: id, loaded: id != "" && a.loads && a.script.sessions[id]}
	if !opened.loaded {
		a.script.sessionsOpened++
		opened.id = fmt.Sprintf("session%d", a.script.sessionsOpened)
		a.script.sessions[opened.id] = true
	}
	a.script.openSessions = append(a.script.openSessions, opened)
	return fakeSession{opened}, nil
}

// fakeSession is a fakeRole with a memory.
type fakeSession struct{ *fakeRole }

func (s fakeSession) ID() string   { return s.id }
func (s fakeSession) Loaded() bool { return s.loaded }
func (s fakeSession) Close()       { s.kill() }
func (s fakeSession) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.dead
}

func (p *fakeRole) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *fakeRole) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var request struct {
			System []string
			Prompt string
		}
		if err := json.Unmarshal(body, &request); err != nil {
			panic(err)
		}
		asked := rolePrompt{role: p.name, session: p.id, text: strings.Join(append(request.System, request.Prompt), "\n\n")}
		text, err := p.script.receive(ctx, asked)
		if ctx.Err() != nil {
			yield(model.Delta{}, model.AsError(context.Cause(ctx)))
			return
		}
		if text != "" && !yield(model.Delta{Text: text}, nil) {
			return
		}
		if err != nil {
			p.kill()
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Finish: "stop"}, nil)
	}
}

// newCrewEngine is an engine with crews over a store. The models' names are those of the roles' connectors.
func newCrewEngine(t *testing.T, store continuo.Store, scripted *scriptedRoles, crews crewSource, change func(*engine.Options)) *testEngine {
	t.Helper()
	return newCrewEngineOver(t, continuo.NewLog(store, continuo.LogOptions{}), scripted, crews, func(o *engine.Options) {
		o.Turns.Gone = func(string) bool { return true } // owners outside this engine have ended
		if change != nil {
			change(o)
		}
	})
}

// newCrewEngineOver is a newCrewEngine over a given log, in which other processes are not known to have ended.
func newCrewEngineOver(t testing.TB, log *continuo.Log, scripted *scriptedRoles, crews crewSource, change func(*engine.Options)) *testEngine {
	t.Helper()
	return newMeasuredCrewEngine(t, log, scripted, crews, nil, change)
}

// newMeasuredCrewEngine is a newCrewEngineOver with metrics.
func newMeasuredCrewEngine(t testing.TB, log *continuo.Log, scripted *scriptedRoles, crews crewSource, metrics *engine.Metrics, change func(*engine.Options)) *testEngine {
	t.Helper()
	options := engine.Options{
		Models: map[string]engine.Upstream{
			"loads":   {Model: fakeAgent{&fakeRole{script: scripted, name: "loads", loads: true}}},
			"forgets": {Model: fakeAgent{&fakeRole{script: scripted, name: "forgets"}}},
			"plain":   {Model: &fakeRole{script: scripted, name: "plain"}},
		},
		Default: "plain", Crews: crews, StepPause: time.Nanosecond, CrewDefaults: engine.RoleDefaults{RestartWait: time.Nanosecond},
	}
	if change != nil {
		change(&options)
	}
	e, err := engine.New(log, options, metrics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	return &testEngine{e, log}
}

var testSession = engine.CrewSession{Scope: continuo.Scope{ProjectID: "default"}, Crew: "trio", SessionID: "s"}

func sendMessage(t *testing.T, e *testEngine, text string) *engine.CrewStatus {
	t.Helper()
	status, err := e.Crews.Send(t.Context(), engine.CrewMessage{Session: testSession, Message: continuo.Text(text), Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// awaitCycle follows a session's newest cycle to its end, and returns the status of the crew.
func awaitCycle(t *testing.T, e *testEngine) *engine.CrewStatus {
	t.Helper()
	status, err := e.Crews.Status(t.Context(), testSession)
	if err != nil {
		t.Fatal(err)
	}
	run, err := e.Log.Runs().Run(t.Context(), "default", status.RunID)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range e.Crews.Follow(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if status, err = e.Crews.Status(t.Context(), testSession); err != nil {
		t.Fatal(err)
	}
	return status
}

// transcript lists the messages of the session, as "who: text".
func transcript(t *testing.T, e *testEngine) []string {
	t.Helper()
	conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case entry.Hidden:
		case entry.Author != nil && entry.Role == continuo.Assistant:
			lines = append(lines, entry.Author.DisplayName+": "+strings.TrimSpace(entry.Content.String()))
		default:
			lines = append(lines, string(entry.Role)+": "+strings.TrimSpace(entry.Content.String()))
		}
	}
	return lines
}

// answerTimes answers with a role's name and a number the given number of times, and then with a pass.
func answerTimes(times int) func(rolePrompt) (string, error) {
	var mu sync.Mutex
	answers := map[string]int{}
	return func(p rolePrompt) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if answers[p.role]++; answers[p.role] > times {
			return "....." + "\n", nil
		}
		return fmt.Sprintf("%s says %d", p.role, answers[p.role]), nil
	}
}

func TestACycleEndsWhenEachRolePasses(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	if status.State != continuo.RunFinished || status.Reason != "no role has anything to add" {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	want := []string{"user: Hello", "Ann: loads says 1", "Bob: forgets says 1", "Cid: plain says 1", "Ann: .....", "Bob: .....", "Cid: ....."}
	if got := transcript(t, e); !slices.Equal(got, want) {
		t.Errorf("the talk is %q", got)
	}
	for _, role := range status.Roles {
		if role.Answers != 1 || role.HasNews {
			t.Errorf("%s has %d answers, and news: %t", role.Name, role.Answers, role.HasNews)
		}
	}
	// Ann's word was new to Bob and Cid; in the end nobody was asked for whom nothing was new.
	for role, want := range map[string]int{"loads": 2, "forgets": 2, "plain": 1} {
		if got := len(scripted.prompts(role)); got != want {
			t.Errorf("%s was asked %d times, want %d", role, got, want)
		}
	}
	for _, p := range scripted.received {
		if strings.Contains(p.text, "Assistant (") && strings.Contains(p.text, ": .....") {
			t.Errorf("%s was shown a placeholder:\n%s", p.role, p.text)
		}
	}
}

func TestTheModeratorEndsACycle(t *testing.T) {
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) {
		if p.role == "forgets" {
			return ".....", nil
		}
		return "on and on", nil
	}}
	text := strings.Replace(threeRoleCrew, "display_name: Bob,", "display_name: Bob, is_moderator: true,", 1)
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, text), nil)
	sendMessage(t, e, "Hello")
	if status := awaitCycle(t, e); status.State != continuo.RunFinished || !strings.HasPrefix(status.Reason, "Bob, who moderates") || status.Next != "cid" {
		t.Errorf("it is %s (%s), next is %s", status.State, status.Reason, status.Next)
	}
	sendMessage(t, e, "And now?")
	awaitCycle(t, e)
	want := []string{"user: Hello", "Ann: on and on", "Bob: .....", "user: And now?", "Cid: on and on", "Ann: on and on", "Bob: ....."}
	if got := transcript(t, e); !slices.Equal(got, want) {
		t.Errorf("the pointer was lost: %q", got)
	}
}

func TestACycleEndsWhenAllFail(t *testing.T) {
	scripted := &scriptedRoles{answer: func(rolePrompt) (string, error) {
		return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "out of order"}
	}}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	if status.State != continuo.RunFailed || !strings.Contains(status.Reason, "Ann (out of order)") {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if len(scripted.received) != 6 {
		t.Errorf("they were asked %d times, each twice is 6", len(scripted.received))
	}
	for _, role := range status.Roles {
		if role.Cursor != 0 || role.Answers != 0 {
			t.Errorf("the cursor of %s moved to %d although it has not answered", role.Name, role.Cursor)
		}
	}
	scripted.answer = answerTimes(0)
	if _, err := e.Crews.Resume(t.Context(), testSession, true); err != nil {
		t.Fatal(err)
	}
	if status := awaitCycle(t, e); status.State != continuo.RunFinished {
		t.Errorf("resumed, it is %s: %s", status.State, status.Reason)
	}
}

// One that fails and two that have nothing to add end a cycle too, and one that fails does not keep others from it.
func TestARoleThatFailsDoesNotHoldUpTheOthers(t *testing.T) {
	answers := answerTimes(2)
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) {
		if p.role == "forgets" {
			return "half of", &model.Error{Reason: continuo.ReasonUpstream, Message: "it ended"}
		}
		return answers(p)
	}}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	if status.State != continuo.RunFinished || !strings.Contains(status.Reason, "it ended") {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if status.Roles[0].Answers != 2 || status.Roles[1].Answers != 0 || status.Roles[2].Answers != 2 {
		t.Errorf("the roles have answered %+v", status.Roles)
	}
}

// What an agent says of its failure goes to chats and terminals: it has no keys and no values of the environment.
func TestARoleFailureHasNoSecret(t *testing.T) {
	scripted := &scriptedRoles{answer: func(rolePrompt) (string, error) {
		return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "Internal: api key sk-abcdef0123456789abcdef of hunter2hunter is invalid"}
	}}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), func(o *engine.Options) { o.Redact = secret.New("hunter2hunter").Text })
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	reason := status.Reason
	for _, role := range status.Roles {
		reason += "\n" + role.Failed
	}
	if strings.Contains(reason, "sk-abc") || strings.Contains(reason, "hunter2") || !strings.Contains(reason, "api key [redacted] of [redacted] is invalid") {
		t.Errorf("the reason is:\n%s", reason)
	}
}

func TestACycleHasALimit(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1000)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, strings.Replace(threeRoleCrew, "roles:", "max_rounds: 2\nroles:", 1)), nil)
	sendMessage(t, e, "Hello")
	if status := awaitCycle(t, e); status.State != continuo.RunFinished || !strings.Contains(status.Reason, "6 turns") || len(scripted.received) != 6 {
		t.Errorf("it is %s (%s) after %d turns", status.State, status.Reason, len(scripted.received))
	}
}

// A message that arrives during a role's turn is shown to that role too, also where the limit leaves each role one turn.
func TestTheLimitCountsFromTheNewestMessage(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1000)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, strings.Replace(threeRoleCrew, "roles:", "max_rounds: 1\nroles:", 1)), nil)
	asked, proceed := make(chan struct{}), make(chan struct{})
	var first sync.Once
	scripted.during = func(rolePrompt) {
		first.Do(func() {
			close(asked)
			<-proceed
		})
	}
	sendMessage(t, e, "Hello")
	<-asked
	sendMessage(t, e, "No, wait!")
	close(proceed)
	awaitCycle(t, e)
	prompts := scripted.prompts("loads")
	if len(prompts) != 2 || !strings.Contains(prompts[1].text, "No, wait!") {
		t.Errorf("Ann was asked %d times: %q", len(prompts), prompts)
	}
	if n := len(scripted.received); n != 4 {
		t.Errorf("%d turns were taken, want one and then one of each role", n)
	}
}

func TestAPassInAnyFormIsStoredAsThePlaceholder(t *testing.T) {
	forms := map[string]string{"loads": "**`.....`**", "forgets": "Assistant (Bob): …..", "plain": "“.....”\n.....\n"}
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) { return forms[p.role], nil }}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	want := []string{"user: Hello", "Ann: .....", "Bob: .....", "Cid: ....."}
	if got := transcript(t, e); !slices.Equal(got, want) || status.Reason != "no role has anything to add" {
		t.Errorf("the talk is %q, and ended because %s", got, status.Reason)
	}
}

func TestAnOwnLabelIsNotStored(t *testing.T) {
	answers := answerTimes(1)
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) {
		text, err := answers(p)
		return map[string]string{"loads": "Assistant (Ann): ", "forgets": "**Bob:** ", "plain": "Assistant (Ann): "}[p.role] + text, err
	}}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	want := []string{"user: Hello", "Ann: loads says 1", "Bob: forgets says 1", "Cid: Assistant (Ann): plain says 1"}
	if got := transcript(t, e); !slices.Equal(got[:4], want) {
		t.Errorf("the talk is %q", got)
	}
}

// A message that comes while a role speaks is heard in the same cycle: by the others at once, by the role next time.
func TestAMessageDuringACycleIsReceived(t *testing.T) {
	answer := answerTimes(1)
	scripted := &scriptedRoles{answer: answer}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	asked, proceed := make(chan struct{}), make(chan struct{})
	var first sync.Once
	scripted.during = func(rolePrompt) {
		first.Do(func() {
			close(asked)
			<-proceed
		})
	}
	begun := sendMessage(t, e, "Hello")
	<-asked
	if received := sendMessage(t, e, "Wait!"); received.RunID != begun.RunID {
		t.Errorf("the message began another cycle: %s and %s", begun.RunID, received.RunID)
	}
	close(proceed)
	if status := awaitCycle(t, e); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	for _, role := range []string{"loads", "forgets", "plain"} {
		all := ""
		for _, p := range scripted.prompts(role) {
			all += p.text + "\n"
		}
		all = strings.ReplaceAll(all, "[CURRENT REQUEST]\nUser: Wait!", "")
		if n := strings.Count(all, "User: Wait!"); n < 1 || n > 1 && role != "plain" {
			t.Errorf("%s was shown the message %d times:\n%s", role, n, all)
		}
	}
	if strings.Contains(scripted.prompts("loads")[0].text, "Wait!") {
		t.Error("Ann was shown a message that came while she spoke")
	}
}

func TestTheSameMessageIsSaidOnce(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(0)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	message := engine.CrewMessage{Session: testSession, Message: continuo.Text("Hello"), Key: "k", Detached: true}
	first, err := e.Crews.Send(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	awaitCycle(t, e)
	again, err := e.Crews.Send(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	if again.RunID != first.RunID || len(transcript(t, e)) != 4 {
		t.Errorf("the message was said again: %q", transcript(t, e))
	}
	message.Message = continuo.Text("Something else")
	if _, err := e.Crews.Send(t.Context(), message); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("another message with the key: %v", err)
	}
}
