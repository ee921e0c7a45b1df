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

// trio is a crew of an agent that remembers and can load what it knew, one that cannot, and a model.
const trio = `
id: trio
roles:
  - {role_name: ann, display_name: Ann, connector: loads, system_prompt: You are Ann.}
  - {role_name: bob, display_name: Bob, connector: forgets, system_prompt: You are Bob.}
  - {role_name: cid, display_name: Cid, connector: model, model: plain, system_prompt: You are Cid.}
`

// band is a source of crews.
type band map[string]*crew.Crew

func newBand(t *testing.T, texts ...string) band {
	t.Helper()
	b := band{}
	for _, text := range texts {
		c, err := crew.Parse("test.yaml", []byte(text), crew.Known{Any: true})
		if err != nil {
			t.Fatal(err)
		}
		b[c.ID] = c
	}
	return b
}

func (b band) Crew(id string) (*crew.Crew, error) {
	if found := b[id]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("crew %q: %w", id, continuo.ErrNotFound)
}

func (b band) Crews() ([]*crew.Crew, error) {
	var all []*crew.Crew
	for _, c := range b {
		all = append(all, c)
	}
	return all, nil
}

// prompted is what a role was sent, once.
type prompted struct {
	role, session string
	text          string // all of it: system messages, and the prompt
}

// stagehand answers for the roles of a crew, each by its name. It stands for all agents and models of a test, and
// outlives the programs that use it.
type stagehand struct {
	answer func(prompted) (string, error)
	// during happens before the answer of a role comes; nil for nothing.
	during func(prompted)
	// hangs says that a role does not answer before its time is up; nil for nobody.
	hangs func(prompted) bool

	mu       sync.Mutex
	heard    []prompted
	sessions map[string]bool // that an agent could load
	opened   int
	down     func() error // why an agent cannot be started; nil for it can
	open     []*part
}

func (s *stagehand) hear(ctx context.Context, p prompted) (string, error) {
	s.mu.Lock()
	s.heard = append(s.heard, p)
	during, answer, hangs := s.during, s.answer, s.hangs
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

func (s *stagehand) prompts(role string) []prompted {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []prompted
	for _, p := range s.heard {
		if p.role == role {
			found = append(found, p)
		}
	}
	return found
}

// part is what speaks: a model, an agent, or a session of an agent.
type part struct {
	stage *stagehand
	name  string
	loads bool

	id     string // of a session
	loaded bool
	mu     sync.Mutex
	dead   bool
}

func (p *part) Info() model.Info {
	return model.Info{Provider: "test", Name: p.name, Protocol: model.ProtocolPrompt}
}

// agent is a part that opens sessions.
type agent struct{ *part }

func (a agent) Open(_ context.Context, id string) (model.Session, error) {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	if a.stage.down != nil {
		if err := a.stage.down(); err != nil {
			return nil, err
		}
	}
	if a.stage.sessions == nil {
		a.stage.sessions = map[string]bool{}
	}
	opened := &part{stage: a.stage, name: a.name, id: id, loaded: id != "" && a.loads && a.stage.sessions[id]}
	if !opened.loaded {
		a.stage.opened++
		opened.id = fmt.Sprintf("session%d", a.stage.opened)
		a.stage.sessions[opened.id] = true
	}
	a.stage.open = append(a.stage.open, opened)
	return session{opened}, nil
}

// session is a part that remembers.
type session struct{ *part }

func (s session) ID() string   { return s.id }
func (s session) Loaded() bool { return s.loaded }
func (s session) Close()       { s.kill() }
func (s session) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.dead
}

func (p *part) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *part) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var request struct {
			System []string
			Prompt string
		}
		if err := json.Unmarshal(body, &request); err != nil {
			panic(err)
		}
		asked := prompted{role: p.name, session: p.id, text: strings.Join(append(request.System, request.Prompt), "\n\n")}
		text, err := p.stage.hear(ctx, asked)
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

// theatre is an engine with crews over a store. The models' names are those of the roles' connectors.
func theatre(t *testing.T, store continuo.Store, hand *stagehand, crews band, change func(*engine.Options)) *testEngine {
	t.Helper()
	return theatreOver(t, continuo.NewLog(store, continuo.LogOptions{}), hand, crews, func(o *engine.Options) {
		o.Turns.Gone = func(string) bool { return true } // whoever is not of this engine has ended
		if change != nil {
			change(o)
		}
	})
}

// theatreOver is a theatre with a log of its own kind, and programs that are not known to have ended.
func theatreOver(t testing.TB, log *continuo.Log, hand *stagehand, crews band, change func(*engine.Options)) *testEngine {
	t.Helper()
	return theatreCounted(t, log, hand, crews, nil, change)
}

// theatreCounted is a theatre over a log that counts what happens there.
func theatreCounted(t testing.TB, log *continuo.Log, hand *stagehand, crews band, metrics *engine.Metrics, change func(*engine.Options)) *testEngine {
	t.Helper()
	options := engine.Options{
		Models: map[string]engine.Upstream{
			"loads":   {Model: agent{&part{stage: hand, name: "loads", loads: true}}},
			"forgets": {Model: agent{&part{stage: hand, name: "forgets"}}},
			"plain":   {Model: &part{stage: hand, name: "plain"}},
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

var ofTrio = engine.CrewSession{Scope: continuo.Scope{ProjectID: "default"}, Crew: "trio", SessionID: "s"}

func say(t *testing.T, e *testEngine, text string) *engine.CrewStatus {
	t.Helper()
	status, err := e.Crews.Say(t.Context(), engine.CrewMessage{Session: ofTrio, Message: continuo.Text(text), Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// played follows a session's newest cycle to its end, and returns how the crew stands.
func played(t *testing.T, e *testEngine) *engine.CrewStatus {
	t.Helper()
	status, err := e.Crews.Status(t.Context(), ofTrio)
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
	if status, err = e.Crews.Status(t.Context(), ofTrio); err != nil {
		t.Fatal(err)
	}
	return status
}

// script is the log of the session's talk, as "who: text".
func script(t *testing.T, e *testEngine) []string {
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

// once answers with a role's name and a number, so many times, and then has nothing to add.
func once(times int) func(prompted) (string, error) {
	var mu sync.Mutex
	said := map[string]int{}
	return func(p prompted) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if said[p.role]++; said[p.role] > times {
			return "....." + "\n", nil
		}
		return fmt.Sprintf("%s says %d", p.role, said[p.role]), nil
	}
}

func TestACycleEndsWhenNobodyHasAnythingToAdd(t *testing.T) {
	hand := &stagehand{answer: once(1)}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), nil)
	say(t, e, "Hello")
	status := played(t, e)
	if status.State != continuo.RunFinished || status.Reason != "no role has anything to add" {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	want := []string{"user: Hello", "Ann: loads says 1", "Bob: forgets says 1", "Cid: plain says 1", "Ann: .....", "Bob: .....", "Cid: ....."}
	if got := script(t, e); !slices.Equal(got, want) {
		t.Errorf("the talk is %q", got)
	}
	for _, role := range status.Roles {
		if role.Answers != 1 || role.HasNews {
			t.Errorf("%s has %d answers, and news: %t", role.Name, role.Answers, role.HasNews)
		}
	}
	// Ann's word was new to Bob and Cid; in the end nobody was asked for whom nothing was new.
	for role, want := range map[string]int{"loads": 2, "forgets": 2, "plain": 1} {
		if got := len(hand.prompts(role)); got != want {
			t.Errorf("%s was asked %d times, want %d", role, got, want)
		}
	}
	for _, p := range hand.heard {
		if strings.Contains(p.text, "Assistant (") && strings.Contains(p.text, ": .....") {
			t.Errorf("%s was shown a placeholder:\n%s", p.role, p.text)
		}
	}
}

func TestTheModeratorEndsACycle(t *testing.T) {
	hand := &stagehand{answer: func(p prompted) (string, error) {
		if p.role == "forgets" {
			return ".....", nil
		}
		return "on and on", nil
	}}
	text := strings.Replace(trio, "display_name: Bob,", "display_name: Bob, is_moderator: true,", 1)
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, text), nil)
	say(t, e, "Hello")
	if status := played(t, e); status.State != continuo.RunFinished || !strings.HasPrefix(status.Reason, "Bob, who moderates") || status.Next != "cid" {
		t.Errorf("it is %s (%s), next is %s", status.State, status.Reason, status.Next)
	}
	say(t, e, "And now?")
	played(t, e)
	want := []string{"user: Hello", "Ann: on and on", "Bob: .....", "user: And now?", "Cid: on and on", "Ann: on and on", "Bob: ....."}
	if got := script(t, e); !slices.Equal(got, want) {
		t.Errorf("the pointer was lost: %q", got)
	}
}

func TestACycleEndsWhenAllFail(t *testing.T) {
	hand := &stagehand{answer: func(prompted) (string, error) {
		return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "out of order"}
	}}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), nil)
	say(t, e, "Hello")
	status := played(t, e)
	if status.State != continuo.RunFailed || !strings.Contains(status.Reason, "Ann (out of order)") {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if len(hand.heard) != 6 {
		t.Errorf("they were asked %d times, each twice is 6", len(hand.heard))
	}
	for _, role := range status.Roles {
		if role.Cursor != 0 || role.Answers != 0 {
			t.Errorf("the cursor of %s moved to %d although it has not answered", role.Name, role.Cursor)
		}
	}
	hand.answer = once(0)
	if _, err := e.Crews.Resume(t.Context(), ofTrio, true); err != nil {
		t.Fatal(err)
	}
	if status := played(t, e); status.State != continuo.RunFinished {
		t.Errorf("resumed, it is %s: %s", status.State, status.Reason)
	}
}

// One that fails and two that have nothing to add end a cycle too, and one that fails does not keep others from it.
func TestARoleThatFailsDoesNotHoldUpTheOthers(t *testing.T) {
	said := once(2)
	hand := &stagehand{answer: func(p prompted) (string, error) {
		if p.role == "forgets" {
			return "half of", &model.Error{Reason: continuo.ReasonUpstream, Message: "it ended"}
		}
		return said(p)
	}}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), nil)
	say(t, e, "Hello")
	status := played(t, e)
	if status.State != continuo.RunFinished || !strings.Contains(status.Reason, "it ended") {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if status.Roles[0].Answers != 2 || status.Roles[1].Answers != 0 || status.Roles[2].Answers != 2 {
		t.Errorf("the roles have answered %+v", status.Roles)
	}
}

// What an agent says of its failure goes to chats and terminals: it has no keys and no values of the environment.
func TestNoSecretIsToldOfARoleThatFails(t *testing.T) {
	hand := &stagehand{answer: func(prompted) (string, error) {
		return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "Internal: api key sk-abcdef0123456789abcdef of hunter2hunter is invalid"}
	}}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), func(o *engine.Options) { o.Redact = secret.New("hunter2hunter").Text })
	say(t, e, "Hello")
	status := played(t, e)
	told := status.Reason
	for _, role := range status.Roles {
		told += "\n" + role.Failed
	}
	if strings.Contains(told, "sk-abc") || strings.Contains(told, "hunter2") || !strings.Contains(told, "api key [redacted] of [redacted] is invalid") {
		t.Errorf("it is told:\n%s", told)
	}
}

func TestACycleHasALimit(t *testing.T) {
	hand := &stagehand{answer: once(1000)}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, strings.Replace(trio, "roles:", "max_rounds: 2\nroles:", 1)), nil)
	say(t, e, "Hello")
	if status := played(t, e); status.State != continuo.RunFinished || !strings.Contains(status.Reason, "6 turns") || len(hand.heard) != 6 {
		t.Errorf("it is %s (%s) after %d turns", status.State, status.Reason, len(hand.heard))
	}
}

// A message that arrives during a role's turn is shown to that role too, also where the limit leaves each role one turn.
func TestTheLimitCountsFromTheNewestMessage(t *testing.T) {
	hand := &stagehand{answer: once(1000)}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, strings.Replace(trio, "roles:", "max_rounds: 1\nroles:", 1)), nil)
	asked, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	hand.during = func(prompted) {
		first.Do(func() {
			close(asked)
			<-goOn
		})
	}
	say(t, e, "Hello")
	<-asked
	say(t, e, "No, wait!")
	close(goOn)
	played(t, e)
	prompts := hand.prompts("loads")
	if len(prompts) != 2 || !strings.Contains(prompts[1].text, "No, wait!") {
		t.Errorf("Ann was asked %d times: %q", len(prompts), prompts)
	}
	if n := len(hand.heard); n != 4 {
		t.Errorf("%d turns were taken, want one and then one of each role", n)
	}
}

func TestAPassInAnyFormIsStoredAsThePlaceholder(t *testing.T) {
	forms := map[string]string{"loads": "**`.....`**", "forgets": "Assistant (Bob): …..", "plain": "“.....”\n.....\n"}
	hand := &stagehand{answer: func(p prompted) (string, error) { return forms[p.role], nil }}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), nil)
	say(t, e, "Hello")
	status := played(t, e)
	want := []string{"user: Hello", "Ann: .....", "Bob: .....", "Cid: ....."}
	if got := script(t, e); !slices.Equal(got, want) || status.Reason != "no role has anything to add" {
		t.Errorf("the talk is %q, and ended because %s", got, status.Reason)
	}
}

func TestAnOwnLabelIsNotStored(t *testing.T) {
	answers := once(1)
	hand := &stagehand{answer: func(p prompted) (string, error) {
		text, err := answers(p)
		return map[string]string{"loads": "Assistant (Ann): ", "forgets": "**Bob:** ", "plain": "Assistant (Ann): "}[p.role] + text, err
	}}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), nil)
	say(t, e, "Hello")
	played(t, e)
	want := []string{"user: Hello", "Ann: loads says 1", "Bob: forgets says 1", "Cid: Assistant (Ann): plain says 1"}
	if got := script(t, e); !slices.Equal(got[:4], want) {
		t.Errorf("the talk is %q", got)
	}
}

// A message that comes while a role speaks is heard in the same cycle: by the others at once, by the role next time.
func TestAMessageIsHeardWhileTheCrewSpeaks(t *testing.T) {
	answer := once(1)
	hand := &stagehand{answer: answer}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), nil)
	asked, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	hand.during = func(prompted) {
		first.Do(func() {
			close(asked)
			<-goOn
		})
	}
	begun := say(t, e, "Hello")
	<-asked
	if heard := say(t, e, "Wait!"); heard.RunID != begun.RunID {
		t.Errorf("the message began another cycle: %s and %s", begun.RunID, heard.RunID)
	}
	close(goOn)
	if status := played(t, e); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	for _, role := range []string{"loads", "forgets", "plain"} {
		all := ""
		for _, p := range hand.prompts(role) {
			all += p.text + "\n"
		}
		all = strings.ReplaceAll(all, "[CURRENT REQUEST]\nUser: Wait!", "")
		if n := strings.Count(all, "User: Wait!"); n < 1 || n > 1 && role != "plain" {
			t.Errorf("%s was shown the message %d times:\n%s", role, n, all)
		}
	}
	if strings.Contains(hand.prompts("loads")[0].text, "Wait!") {
		t.Error("Ann was shown a message that came while she spoke")
	}
}

func TestTheSameMessageIsSaidOnce(t *testing.T) {
	hand := &stagehand{answer: once(0)}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), nil)
	message := engine.CrewMessage{Session: ofTrio, Message: continuo.Text("Hello"), Key: "k", Detached: true}
	first, err := e.Crews.Say(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	played(t, e)
	again, err := e.Crews.Say(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	if again.RunID != first.RunID || len(script(t, e)) != 4 {
		t.Errorf("the message was said again: %q", script(t, e))
	}
	message.Message = continuo.Text("Something else")
	if _, err := e.Crews.Say(t.Context(), message); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("another message with the key: %v", err)
	}
}
