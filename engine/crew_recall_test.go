package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/window"
)

// recallingCrew has a role of each kind of view, on models and on an agent with sessions, whose windows hold few messages.
const recallingCrew = `
id: trio
max_rounds: 2
roles:
  - {role_name: full, display_name: Fulla, connector: model, model: chat, system_prompt: You are Fulla., view: {kind: full, tokens: 600}}
  - {role_name: delta, display_name: Delia, connector: model, model: plain, system_prompt: You are Delia., view: {kind: delta, tokens: 600}}
  - {role_name: window, display_name: Wim, connector: model, model: plain, system_prompt: You are Wim., view: {kind: window, newest: 6}}
  - {role_name: summary, display_name: Sam, connector: model, model: chat, system_prompt: You are Sam., view: {kind: summary, newest: 4, tokens: 900}}
  - {role_name: memory, display_name: Mia, connector: model, model: plain, system_prompt: You are Mia., view: {kind: memory, tokens: 900}}
  - {role_name: agent, display_name: Agnes, connector: loads, system_prompt: You are Agnes.}
`

// crewRecalls is a crew whose roles recall.
type crewRecalls struct {
	*recalling
	scripted *scriptedRoles
}

func newCrewRecalls(t *testing.T, store continuo.Store, words index.Store, change func(*engine.Options)) *crewRecalls {
	t.Helper()
	scripted := &scriptedRoles{answer: func(rolePrompt) (string, error) { return ".....", nil }}
	e := newCrewEngine(t, store, scripted, newCrewSource(t, recallingCrew), func(o *engine.Options) {
		o.Index = words
		o.Models["chat"] = engine.Upstream{Model: noted{}}
		if change != nil {
			change(o)
		}
	})
	return &crewRecalls{&recalling{testEngine: e, t: t, index: words}, scripted}
}

// send runs a cycle, and returns the conversation after it.
func (r *crewRecalls) send(text string) continuo.Conversation {
	r.t.Helper()
	sendMessage(r.t, r.testEngine, text)
	awaitCycle(r.t, r.testEngine)
	found, err := r.Log.Find(r.t.Context(), testSession.Scope, testSession.SessionID)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// talk is a conversation of which each role's window has left out the beginning.
func (r *crewRecalls) talk() continuo.Conversation {
	r.send("Hello, we want to plan a trip.")
	c := r.send("The password of the harbour gate in Lisbon is marmalade.")
	for _, about := range strings.Fields("tickets shoes maps water boots candles spoons blankets ropes lamps stoves knives towels soap pencils paper") {
		c = r.send(strings.Repeat(about+" "+about[1:]+"ed ", 12)) // no two have a word in common
	}
	return c
}

// overStores runs a test over each store.
func overStores(t *testing.T, test func(t *testing.T, store maintenance.Store, words index.Store, dump func() string)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		store := storetest.NewMemory()
		test(t, store, store, func() string { return "" })
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log.db")
		store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		test(t, store, store, func() string { return dumpSQLite(t, path, true) })
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Start(t, pgtest.Options{}).Database(t)
		store, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		test(t, store, store, func() string { return dumpPostgres(t, url) })
	})
}

// TestRolesRecallWhatTheirWindowsLeaveOut: before the cue of each role is a block for it, and its request shows it.
func TestRolesRecallWhatTheirWindowsLeaveOut(t *testing.T) {
	overStores(t, func(t *testing.T, store maintenance.Store, words index.Store, _ func() string) {
		r := newCrewRecalls(t, store, words, nil)
		c := r.talk()
		before, _ := r.checkRequests(c)
		shown, err := r.Contexts.Build(t.Context(), c, engine.ContextRequest{Query: gateQuestion, View: "role:full"})
		if err != nil || !strings.Contains(string(shown.Messages[len(shown.Messages)-1]), "marmalade") || len(shown.Plan.Blocks()) != 1 {
			t.Errorf("the question would be sent to a role as %s, %v", shown.Messages, err)
		}
		explained, err := r.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{Query: gateQuestion, View: "role:full"}, recalls.ExplainRequest{})
		if err != nil || explained.View != "role:full" || explained.Outcome != recalls.Recalled || explained.Entries[0].Outcome != recalls.Recalled {
			t.Errorf("the recall of a role is explained by %+v, %v", explained, err)
		}
		question := c.LastSeq + 1
		c = r.send(gateQuestion)
		blocks := map[string]continuo.Entry{}
		entries := r.entries(c)
		for i, entry := range entries {
			if !entry.HoldsRecall() || entry.Seq < question {
				continue
			}
			role := entry.Recall.Role
			if next := entries[i+1]; next.RunEvent == nil || next.RunEvent.Kind != continuo.RunNodeBegan || next.NodeID != role || entry.NodeID != role {
				t.Errorf("after the block of %s is %+v", role, next)
			}
			if _, isSecond := blocks[role]; isSecond || !slices.Contains(entry.Recall.For, question) || entry.Recall.Query == "" {
				t.Errorf("the block of %s: %+v", role, entry.Recall)
			}
			blocks[role] = entry
		}
		for _, role := range []string{"full", "delta", "window", "summary", "memory"} {
			if block := blocks[role]; !strings.Contains(block.Content.String(), "marmalade") {
				t.Errorf("%s was shown %q", role, block.Content)
			}
		}
		if _, has := blocks["agent"]; has {
			t.Error("an agent is shown again what its session has")
		}
		after, _ := r.checkRequests(c)
		for i, body := range after[:len(before)] {
			if !bytes.Equal(body, before[i]) {
				t.Errorf("the request %d has changed", i)
			}
		}
		// Another cycle asks nothing, and each role has its block in the same place.
		c = r.send("Thank you.")
		for _, entry := range r.entries(c)[c.LastSeq-5:] {
			if entry.HoldsRecall() {
				t.Errorf("thanks recalled %+v", entry.Recall)
			}
		}
		chat, err := r.Contexts.Build(t.Context(), c, engine.ContextRequest{View: window.Codex})
		if err != nil || len(chat.Plan.Blocks()) > 0 {
			t.Errorf("a view of turns shows the blocks of roles: %v", err)
		}
	})
}

// checkRequests rebuilds the requests of all answers. Each shows the blocks of its own role alone, once each, and nothing else
// that looks like one; it is the one that was sent, unless something of it was redacted; and while the window of a role
// stands, those on lists of messages extend each other.
func (r *crewRecalls) checkRequests(c continuo.Conversation) (bodies [][]byte, shown int) {
	r.t.Helper()
	type sent struct {
		epoch int64
		list  []json.RawMessage
	}
	before := map[string]sent{}
	entries := r.entries(c)
	for _, entry := range entries {
		if entry.Round == nil || entry.Author == nil {
			continue
		}
		role := entry.Author.RoleName
		request, err := r.Contexts.Request(r.t.Context(), c, entry.Seq)
		if err != nil {
			r.t.Fatal(err)
		}
		bodies = append(bodies, request.Body)
		if !request.Same && len(request.Redacted) == 0 {
			r.t.Errorf("the request %d of %s is not the one that was sent", entry.Seq, role)
		}
		blocks := request.Plan.Blocks()
		shown += len(blocks)
		for _, block := range blocks {
			if block.Recall.Role != role {
				r.t.Errorf("the request %d of %s shows a block of %s", entry.Seq, role, block.Recall.Role)
			}
		}
		if n := bytes.Count(request.Body, []byte("[RECALLED] Earlier messages that may")); n != len(blocks) {
			r.t.Errorf("the request %d of %s has %d blocks, its plan %d", entry.Seq, role, n, len(blocks))
		}
		for _, item := range request.Plan.Items {
			if item.Verdict == window.Recalled && item.Recall != nil && entries[item.Seq-1].Hidden {
				r.t.Errorf("the request %d recalls the hidden entry %d", entry.Seq, item.Seq)
			}
		}
		var body struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(request.Body, &body); err != nil {
			r.t.Fatal(err)
		}
		plan := request.Plan
		for n := len(plan.Messages); n > 0 && len(body.Messages) > 0 && plan.Messages[n-1].Passing; n-- {
			plan.Messages, body.Messages = plan.Messages[:n-1], body.Messages[:len(body.Messages)-1]
		}
		if was, ok := before[role]; ok && was.epoch == plan.Window.Epoch && !plan.Moved && request.Same {
			for i := range was.list {
				if i >= len(body.Messages) || !bytes.Equal(was.list[i], body.Messages[i]) {
					r.t.Errorf("the request %d of %s does not extend the one before: message %d was %s", entry.Seq, role, i, was.list[i])
					break
				}
			}
		}
		delete(before, role)
		if request.Same {
			before[role] = sent{plan.Window.Epoch, body.Messages}
		}
	}
	return bodies, shown
}

// TestAnAttemptThatIsRepeatedRecallsNothingAgain also where the first one failed after its block was in the log.
func TestAnAttemptThatIsRepeatedRecallsNothingAgain(t *testing.T) {
	store := storetest.NewMemory()
	r := newCrewRecalls(t, store, store, nil)
	r.talk()
	failed := false
	r.scripted.answer = func(p rolePrompt) (string, error) {
		if strings.Contains(p.text, "You are Wim.") && strings.Contains(p.text, gateQuestion) && !failed {
			failed = true
			return "", errors.New("the line is down")
		}
		return ".....", nil
	}
	c := r.send(gateQuestion)
	blocks, attempts := 0, 0
	for _, entry := range r.entries(c)[c.LastSeq-30:] {
		if entry.HoldsRecall() && entry.Recall.Role == "window" {
			blocks++
		}
		if entry.RunEvent != nil && entry.RunEvent.Kind == continuo.RunNodeBegan && entry.NodeID == "window" {
			attempts = max(attempts, entry.RunEvent.Attempt)
		}
	}
	if blocks != 1 || attempts != 2 || !failed {
		t.Errorf("%d blocks, %d attempts", blocks, attempts)
	}
	r.checkRequests(c)
}

func TestRolesRecallNothingWithoutAShare(t *testing.T) {
	store := storetest.NewMemory()
	r := newCrewRecalls(t, store, store, func(o *engine.Options) {
		views := window.DefaultSettings()
		views.RecallShare = 0
		o.Views = &views
	})
	r.talk()
	if blocks := r.blocks(r.send(gateQuestion)); len(blocks) > 0 {
		t.Errorf("recalled: %+v", blocks)
	}
}

// TestRolesRecallFacts and entries of the user's other conversations, where the settings say so.
func TestRolesRecallFactsAndOtherConversations(t *testing.T) {
	store := storetest.NewMemory()
	r := newCrewRecalls(t, store, store, func(o *engine.Options) {
		o.RecallScope, o.Memory = lookup.User, memories.Options{Enabled: true}
	})
	scope := continuo.Scope{ProjectID: "default", UserID: "anna"}
	for session, text := range map[string]string{"one": "The password of the harbour gate in Lisbon is marmalade.", "two": "Good morning, and what a day it is."} {
		chat, err := r.Turns.Chat(t.Context(), engine.ChatRequest{Scope: scope, SessionID: session, Message: continuo.Text(text)})
		if err != nil {
			t.Fatal(err)
		}
		lastOf(t, chat)
	}
	if _, err := r.Memories.Remember(t.Context(), scope, memories.Statement{Owner: memories.Owner{UserID: "anna"}, Text: "I live in the lighthouse of Cascais.", Kind: continuo.FactOther}); err != nil {
		t.Fatal(err)
	}
	r.indexAll()
	for query, want := range map[string]string{gateQuestion: "marmalade", "Is the lighthouse of Cascais where I live?": "lighthouse"} {
		session := engine.CrewSession{Scope: scope, Crew: "trio", SessionID: want}
		status, err := r.Crews.Send(t.Context(), engine.CrewMessage{Session: session, Message: continuo.Text(query), Detached: true})
		if err != nil {
			t.Fatal(err)
		}
		run, err := r.Log.Runs().Run(t.Context(), "default", status.RunID)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Crews.Follow(t.Context(), run, 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
		c, err := r.Log.Find(t.Context(), scope, want)
		if err != nil {
			t.Fatal(err)
		}
		blocks := r.blocks(c)
		if len(blocks) != 6 { // an agent with a session does not know other conversations
			t.Fatalf("%q: %d blocks", query, len(blocks))
		}
		for _, block := range blocks {
			if !strings.Contains(block.Content.String(), want) || block.Recall.UserID != "anna" || block.Recall.Items[0].ConversationID == "" {
				t.Errorf("%s was shown %q of %+v", block.Recall.Role, block.Content, block.Recall)
			}
		}
		r.checkRequests(c)
	}
}

// TestRecallLawsOfCrews holds for random messages, redactions and resets, over each store: no role is shown what was recalled for
// another, nothing from before a reset is recalled, requests of the past are the ones that were sent, and no byte of what was
// redacted is in any table.
func TestRecallLawsOfCrews(t *testing.T) {
	overStores(t, func(t *testing.T, store maintenance.Store, words index.Store, dump func() string) {
		random := rand.New(rand.NewPCG(3, 19))
		r := newCrewRecalls(t, store, words, func(o *engine.Options) { o.RecallThreshold = 1_000 })
		var gone []string
		var c continuo.Conversation
		since, recalled := int64(0), 0
		for step := range 24 {
			older := random.IntN(step + 1)
			before := c.LastSeq
			c = r.send(fmt.Sprintf("The harbour of place%d and riverside%d has a gate. Tell me of place%d and riverside%d. zq%dx?", step, step, older, older, step))
			for _, entry := range r.entries(c)[before:] {
				if !entry.HoldsRecall() {
					continue
				}
				recalled++
				for _, item := range entry.Recall.Items {
					if item.Seq <= since {
						t.Errorf("entry %d recalls %d, from before the reset at %d", entry.Seq, item.Seq, since)
					}
				}
			}
			switch {
			case step != 17 && random.IntN(3) == 0:
				seq := 1 + random.Int64N(c.LastSeq)
				entries := r.entries(c)
				for seq > 1 && entries[seq-1].Role != continuo.User && random.IntN(9) > 0 {
					seq-- // mostly what a person said
				}
				entry := entries[seq-1]
				if _, err := r.Log.Redact(t.Context(), c, seq, seq, ""); err != nil {
					t.Fatal(err)
				}
				if text := entry.Content.String(); entry.Role == continuo.User && entry.Redacted == nil {
					gone = append(gone, strings.TrimSuffix(text[strings.LastIndexByte(text, ' ')+1:], "?"))
				}
			case step == 17:
				if _, err := r.Crews.Reset(t.Context(), testSession, ""); err != nil {
					t.Fatal(err)
				}
				c, _ = r.Log.Conversation(t.Context(), c.ID)
				since = c.LastSeq - 1
			}
		}
		rows := dump()
		bodies, shown := r.checkRequests(c)
		for _, word := range gone {
			if strings.Contains(rows, word) {
				t.Errorf("a table has %s, which was redacted", word)
			}
			if slices.ContainsFunc(bodies, func(body []byte) bool { return bytes.Contains(body, []byte(word)) }) {
				t.Errorf("a request has %s, which was redacted", word)
			}
		}
		if recalled < 20 || shown < 20 || len(gone) < 2 || since == 0 {
			t.Errorf("only %d recalls, %d shown, %d redactions, a reset at %d", recalled, shown, len(gone), since)
		}
	})
}
