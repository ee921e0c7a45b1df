package engine_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
)

// meteredModel answers each request with "ok" and a usage of 40 tokens.
type meteredModel struct{ asked atomic.Int64 }

func (m *meteredModel) Info() model.Info {
	return model.Info{Provider: "metered", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (m *meteredModel) Stream(context.Context, []byte) iter.Seq2[model.Delta, error] {
	m.asked.Add(1)
	return func(yield func(model.Delta, error) bool) {
		_ = yield(model.Delta{Text: "ok"}, nil) && yield(model.Delta{Usage: &continuo.Usage{InputTokens: 30, OutputTokens: 10}}, nil) &&
			yield(model.Delta{Finish: "stop"}, nil)
	}
}

// budgeted are engines over one store, of which only one lives at a time, and a key k with a budget in tokens.
type budgeted struct {
	t      *testing.T
	store  maintenance.Store
	model  *meteredModel
	memory bool // facts are extracted by the model
	tokens atomic.Int64
	caller context.Context // of the key k
	scope  continuo.Scope
}

const fourSteps = `
id: four
name: Four steps
nodes: {one: {brief: Do it.}, two: {brief: Do it.}, three: {brief: Do it.}, four: {brief: Do it.}}
edges: [one -> two, two -> three, three -> four]
`

var crewOfTwo = engine.CrewSession{Scope: continuo.Scope{ProjectID: "default"}, Crew: "pair", SessionID: "s"}

const pair = `
id: pair
roles:
  - {role_name: ann, display_name: Ann, connector: model, model: metered, system_prompt: You are Ann.}
  - {role_name: bob, display_name: Bob, connector: model, model: metered, system_prompt: You are Bob.}
`

func (b *budgeted) open() *testEngine {
	b.t.Helper()
	log := continuo.NewLog(b.store, continuo.LogOptions{})
	e, err := engine.New(log, engine.Options{
		Models: map[string]engine.Upstream{"metered": {Model: b.model}}, Default: "metered",
		Workflows: newWorkflowSource(b.t, fourSteps), Crews: newCrewSource(b.t, pair),
		Memory: memories.Options{Enabled: b.memory, Extractor: "metered"},
		Budgets: ledger.BudgetOptions{User: auth.Budget{Tokens: 1000}, Key: func(_ context.Context, id string) (auth.Key, error) {
			return auth.Key{ID: id, Budget: auth.Budget{Tokens: b.tokens.Load()}}, nil
		}},
	}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return &testEngine{e, log}
}

// spent are the requests that were charged, by key.
func (b *budgeted) spent(e *testEngine) map[string]int64 {
	b.t.Helper()
	rows, err := e.Log.Spent(b.t.Context(), continuo.SpendingQuery{ProjectID: b.scope.ProjectID, By: []continuo.SpendingGroup{continuo.SpendingByKey}})
	if err != nil {
		b.t.Fatal(err)
	}
	requests := map[string]int64{}
	for _, row := range rows {
		requests[row.KeyID] = row.Requests
	}
	return requests
}

func eachBudgetStore(t *testing.T, test func(b *budgeted)) {
	for name, open := range map[string]func(t *testing.T) (maintenance.Store, error){
		"sqlite": func(t *testing.T) (maintenance.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (maintenance.Store, error) {
			return postgres.Open(t.Context(), pgtest.Start(t, pgtest.Options{}).Database(t), postgres.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			b := &budgeted{t: t, store: store, model: &meteredModel{}, scope: continuo.Scope{ProjectID: "default"}}
			b.caller = continuo.WithPayer(t.Context(), continuo.Payer{ProjectID: "default", KeyID: "k"})
			test(b)
		})
	}
}

// A run is charged to the key that began it, whichever process drives it and whoever resumes it. Where the budget is used up
// it fails with the reason, and continues when the budget is raised.
func TestBudgetsOfKeysBoundRuns(t *testing.T) {
	eachBudgetStore(t, func(b *budgeted) {
		t := b.t
		b.tokens.Store(100) // three requests: the third exceeds it
		first := b.open()
		begun, err := first.Runs.Start(b.caller, engine.RunRequest{Scope: b.scope, Workflow: "four", SessionID: "s", Detached: true})
		if err != nil {
			t.Fatal(err)
		}
		if begun.KeyID != "k" {
			t.Errorf("the run has the key %q", begun.KeyID)
		}
		failed := awaitRun(t, first, begun.Run)
		if !strings.Contains(failed.Reason, "the budget of API key k is used up: 120 of 100 tokens this month") {
			t.Errorf("it failed because of %q", failed.Reason)
		}
		if _, err := first.Runs.Resume(t.Context(), begun.Run, true); !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("resumed before the budget is raised: %v", err)
		}
		if _, err := first.Runs.Start(b.caller, engine.RunRequest{Scope: b.scope, Workflow: "four", SessionID: "other"}); !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("another run: %v", err)
		}
		if _, err := first.Log.Find(t.Context(), b.scope, "other"); !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("the refused run left a conversation: %v", err)
		}
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		b.tokens.Store(1000)
		second := b.open()
		defer second.Close(context.Background())
		if _, err := second.Runs.Resume(t.Context(), begun.Run, true); err != nil { // by a caller without a key
			t.Fatal(err)
		}
		if ended := awaitRun(t, second, begun.Run); ended.State != continuo.RunFinished {
			t.Errorf("the run is %s because of %q", ended.State, ended.Reason)
		}
		if got := b.spent(second); len(got) != 1 || got["k"] != 4 {
			t.Errorf("requests by key: %v, want 4 of k", got)
		}
	})
}

// A crew's cycle is charged to the key that began it: its roles are not asked one after another where the budget is used up.
func TestBudgetsOfKeysBoundCrews(t *testing.T) {
	eachBudgetStore(t, func(b *budgeted) {
		t := b.t
		b.tokens.Store(40)
		e := b.open()
		message := engine.CrewMessage{Session: crewOfTwo, Message: continuo.Text("Hello"), Detached: true}
		begun, err := e.Crews.Send(b.caller, message)
		if err != nil {
			t.Fatal(err)
		}
		awaitEndOfCycle(t, e, begun.RunID)
		status, err := e.Crews.Status(t.Context(), crewOfTwo)
		if err != nil {
			t.Fatal(err)
		}
		if status.State != continuo.RunFailed || !strings.Contains(status.Reason, "the budget of API key k is used up: 40 of 40 tokens") {
			t.Errorf("it is %s because of %q", status.State, status.Reason)
		}
		if asked := b.model.asked.Load(); asked != 1 {
			t.Errorf("the model was asked %d times", asked)
		}
		if _, err := e.Crews.Send(b.caller, message); !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("another message: %v", err)
		}
		if _, err := e.Crews.Resume(t.Context(), crewOfTwo, true); !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("resumed before the budget is raised: %v", err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.tokens.Store(1000)
		e = b.open()
		defer e.Close(context.Background())
		if _, err := e.Crews.Resume(t.Context(), crewOfTwo, true); err != nil {
			t.Fatal(err)
		}
		awaitEndOfCycle(t, e, begun.RunID)
		if status, err = e.Crews.Status(t.Context(), crewOfTwo); err != nil || status.State != continuo.RunFinished {
			t.Errorf("after the budget was raised: %+v, %v", status, err)
		}
		if got := b.spent(e); len(got) != 1 || got["k"] != b.model.asked.Load() {
			t.Errorf("requests by key: %v, want %d of k", got, b.model.asked.Load())
		}
	})
}

// The budget of a conversation's user bounds its runs and cycles, also for callers who do not name the user: nothing is begun
// or resumed once it is used up.
func TestBudgetsOfUsersBoundRunsAndCrews(t *testing.T) {
	eachBudgetStore(t, func(b *budgeted) {
		t := b.t
		b.tokens.Store(100_000)
		e := b.open()
		defer e.Close(context.Background())
		if _, err := e.Log.Create(t.Context(), continuo.Conversation{ProjectID: "default", UserID: "ada", Key: "s"}); err != nil {
			t.Fatal(err)
		}
		spent := continuo.Spending{ProjectID: "default", UserID: "ada", Day: continuo.DayOf(time.Now()), Spent: continuo.Spent{InputTokens: 930}}
		if err := e.Log.Charge(t.Context(), spent); err != nil {
			t.Fatal(err)
		}
		request := engine.RunRequest{Scope: b.scope, Workflow: "four", SessionID: "s", Detached: true}
		begun, err := e.Runs.Start(b.caller, request) // its third request exceeds the budget of 1000
		if err != nil {
			t.Fatal(err)
		}
		if failed := awaitRun(t, e, begun.Run); !strings.Contains(failed.Reason, "the budget of user ada is used up: 1010 of 1000 tokens") {
			t.Errorf("it is %s because of %q", failed.State, failed.Reason)
		}
		before, err := e.Log.Find(t.Context(), b.scope, "s")
		if err != nil {
			t.Fatal(err)
		}
		_, resumed := e.Runs.Resume(b.caller, begun.Run, true)
		_, another := e.Runs.Start(b.caller, request)
		_, sent := e.Crews.Send(b.caller, engine.CrewMessage{Session: crewOfTwo, Message: continuo.Text("Hello"), Detached: true})
		for what, err := range map[string]error{"resumed": resumed, "another run": another, "a message to a crew": sent} {
			if !errors.Is(err, ledger.ErrBudget) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after, err := e.Log.Find(t.Context(), b.scope, "s"); err != nil || after.LastSeq != before.LastSeq {
			t.Errorf("the conversation has %d entries instead of %d: %v", after.LastSeq, before.LastSeq, err)
		}
	})
}

// An agent's work is charged to the key that set it to work.
func TestBudgetsOfKeysBoundTasks(t *testing.T) {
	eachBudgetStore(t, func(b *budgeted) {
		t := b.t
		b.tokens.Store(30)
		e := b.open()
		defer e.Close(context.Background())
		made := createTask(t, e, "Count the files", "")
		agent, err := e.Tasks.Deploy(b.caller, engine.DeployRequest{Scope: b.scope, TaskID: made.ID, Type: "metered"})
		if err != nil {
			t.Fatal(err)
		}
		awaitAgent(t, e, agent)
		if _, err := e.Tasks.Deploy(b.caller, engine.DeployRequest{Scope: b.scope, TaskID: made.ID, Type: "metered"}); !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("another agent: %v", err)
		}
		if got := b.spent(e); len(got) != 1 || got["k"] != 1 {
			t.Errorf("requests by key: %v, want 1 of k", got)
		}
	})
}

// Requests for summaries, notes and facts are refused like those of turns: a summary is then made without a model, and facts
// are read when the budget allows it.
func TestBudgetsBoundSummariesAndExtractions(t *testing.T) {
	eachBudgetStore(t, func(b *budgeted) {
		t := b.t
		b.memory = true
		b.tokens.Store(1000)
		e := b.open()
		defer e.Close(context.Background())
		user := continuo.Scope{ProjectID: "default", UserID: "ada"}
		conversation, err := e.Log.Create(t.Context(), continuo.Conversation{ProjectID: user.ProjectID, UserID: user.UserID})
		if err != nil {
			t.Fatal(err)
		}
		said := continuo.Entry{Role: continuo.User, Content: continuo.Text("I live in Oslo. My cat is called Mia.")}
		if _, err := e.Log.Append(t.Context(), conversation.ID, []continuo.Entry{said}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		if conversation, err = e.Log.Conversation(t.Context(), conversation.ID); err != nil {
			t.Fatal(err)
		}
		summary, err := e.Summaries.Make(b.caller, conversation, 1, 1, 0, "", "metered", 400)
		if err != nil || summary.Summary.By != "gpt-4o" {
			t.Errorf("within the budget: %+v, %v", summary, err)
		}
		if got := b.spent(e); len(got) != 1 || got["k"] != 1 {
			t.Errorf("requests by key: %v, want 1 of k", got)
		}
		spent := continuo.Spending{ProjectID: user.ProjectID, UserID: user.UserID, Day: "2999-01-01", Spent: continuo.Spent{InputTokens: 1000}}
		if err := e.Log.Charge(t.Context(), spent); err != nil {
			t.Fatal(err)
		}
		asked := b.model.asked.Load()
		if summary, err = e.Summaries.Make(b.caller, conversation, 1, 1, 0, "", "metered", 400); err != nil || summary.Summary.By == "gpt-4o" {
			t.Errorf("beyond the budget: %+v, %v", summary, err)
		}
		if err := e.Memories.Extract(t.Context(), user, memories.Owner{}); !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("beyond the budget: %v", err)
		}
		if more := b.model.asked.Load() - asked; more != 0 {
			t.Errorf("the model was asked %d times", more)
		}
	})
}
