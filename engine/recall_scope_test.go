package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// newScoped is an engine whose turns recall from a scope, and whose memory is enabled.
func newScoped(t *testing.T, store maintenance.Store, words index.Store, scope lookup.Scope, threshold int) *recalling {
	t.Helper()
	return newScopedWith(t, store, continuo.LogOptions{}, words, scope, threshold)
}

func newScopedWith(t *testing.T, store maintenance.Store, options continuo.LogOptions, words index.Store, scope lookup.Scope, threshold int) *recalling {
	t.Helper()
	options.Counter = token.O200k()
	log := continuo.NewLog(store, options)
	views := window.DefaultSettings()
	views.ChatMaxMessages, views.ChatMaxTokens, views.ChatFollowsWindow = 8, 900, false
	e, err := engine.New(log, engine.Options{
		Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo", Views: &views, Index: words,
		RecallThreshold: threshold, RecallScope: scope, Memory: memories.Options{Enabled: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	return &recalling{testEngine: &testEngine{e, log}, t: t, index: words}
}

// indexAll brings the index up to date.
func (r *recalling) indexAll() {
	r.t.Helper()
	if _, err := (index.Indexer{Log: r.Log, Store: r.index}).Run(r.t.Context(), index.Scope{}, time.Now().Add(time.Minute)); err != nil {
		r.t.Fatal(err)
	}
}

// blocks are the recalls of a conversation that are not redacted.
func (r *recalling) blocks(c continuo.Conversation) (found []continuo.Entry) {
	r.t.Helper()
	for _, entry := range r.entries(c) {
		if entry.HoldsRecall() && entry.Redacted == nil {
			found = append(found, entry)
		}
	}
	return found
}

const gateQuestion = "What is the password of the harbour gate in Lisbon?"

func TestTurnsRecallFromConversationsOfTheUser(t *testing.T) {
	store := storetest.NewMemory()
	r := newScoped(t, store, store, lookup.User, 0)
	first := r.say("trip", "anna", "The password of the harbour gate in Lisbon is marmalade.")
	r.say("other", "bo", "The password of the harbour gate in Lisbon is tangerine.")
	for i := range 6 {
		r.say(fmt.Sprint("fill", i), "anna", fmt.Sprintf("Step %d: buy tickets and pack the bag.", i))
	}
	r.indexAll()
	c := r.say("new", "anna", gateQuestion)
	blocks := r.blocks(c)
	if len(blocks) != 1 || blocks[0].Seq != 1 {
		t.Fatalf("a new conversation recalls %+v", blocks)
	}
	block := blocks[0]
	text := block.Content.String()
	if !strings.Contains(text, "marmalade") || strings.Contains(text, "tangerine") {
		t.Errorf("the block is %s", text)
	}
	if item := block.Recall.Items[0]; item.ConversationID != first.ID && !strings.Contains(text, "fact ") || block.Recall.UserID != "anna" || block.Recall.Scope != "user" {
		t.Errorf("it is %+v", block.Recall)
	}
	r.replayed(c)

	fork, err := r.Log.Fork(t.Context(), c.ID, 0, continuo.Conversation{UserID: "bo"})
	if err != nil {
		t.Fatal(err)
	}
	if shown := r.blocks(fork); len(shown) != 0 {
		t.Errorf("a fork for another user shows %+v", shown)
	}
	if _, err := r.Log.Redact(t.Context(), first, 1, 0, ""); err != nil {
		t.Fatal(err)
	}
	if left := r.blocks(c); len(left) != 0 {
		t.Errorf("after the redaction in %s the block is still %s", first.ID, left[0].Content.String())
	}
}

func TestAConversationOfNobodyRecallsNothingOfOthers(t *testing.T) {
	for _, scope := range []lookup.Scope{lookup.User, lookup.Project} {
		store := storetest.NewMemory()
		r := newScoped(t, store, store, scope, 0)
		r.say("trip", "anna", "The password of the harbour gate in Lisbon is marmalade.")
		r.say("shared", "", "The password of the harbour gate in Lisbon is tangerine.")
		for i := range 6 {
			r.say("shared", "", fmt.Sprintf("Step %d: buy tickets and pack the bag.", i))
		}
		r.indexAll()
		text := ""
		for _, block := range r.blocks(r.say("new", "", gateQuestion)) {
			text += block.Content.String()
		}
		if strings.Contains(text, "marmalade") || strings.Contains(text, "tangerine") != (scope == lookup.Project) {
			t.Errorf("the scope %s recalls %q", scope, text)
		}
	}
}

func TestFactsAreRecalled(t *testing.T) {
	store := storetest.NewMemory()
	r := newScoped(t, store, store, lookup.Conversation, 0)
	scope, owner := continuo.Scope{ProjectID: "default"}, memories.Owner{UserID: "anna"}
	remember := func(owner memories.Owner, text string) memories.Fact {
		fact, err := r.Memories.Remember(t.Context(), scope, memories.Statement{Owner: owner, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return fact
	}
	for i := range 9 {
		remember(owner, fmt.Sprintf("I have packed bag number %d for the journey.", i))
	}
	fact := remember(owner, "The password of the harbour gate in Lisbon is marmalade.")
	remember(memories.Owner{UserID: "bo"}, "The password of the harbour gate in Lisbon is tangerine.")
	c := r.say("s", "anna", gateQuestion)
	blocks := r.blocks(c)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks", len(blocks))
	}
	if text := blocks[0].Content.String(); !strings.Contains(text, fmt.Sprintf("fact %d (", fact.ID)) || !strings.Contains(text, "marmalade") || strings.Contains(text, "tangerine") {
		t.Errorf("the block is %s", text)
	}
	again := r.say("s", "anna", "Say again: what is the password of the harbour gate in Lisbon?")
	if len(r.blocks(again)) != 1 {
		t.Error("a fact that is shown was recalled again")
	}
	without, err := r.Turns.Chat(t.Context(), engine.ChatRequest{
		Scope: continuo.Scope{ProjectID: "default", UserID: "anna"}, SessionID: "without", Message: continuo.Text(gateQuestion), NoMemory: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	lastOf(t, without)
	if found := r.blocks(without.Conversation); len(found) != 0 {
		t.Errorf("a turn without memory recalled %s", found[0].Content.String())
	}
	if err := r.Memories.Forget(t.Context(), scope, owner, fact.ID, false); err != nil {
		t.Fatal(err)
	}
	if left := r.blocks(again); len(left) != 0 {
		t.Errorf("after forget the block is still %s", left[0].Content.String())
	}
	for _, block := range r.blocks(r.say("other", "anna", gateQuestion)) {
		t.Errorf("a forgotten fact was recalled: %s", block.Content.String())
	}
}

// TestARemovalReachesRecallsElsewhere deletes the memory, the conversation, or gives it away: what other conversations recalled
// of it is redacted.
func TestARemovalReachesRecallsElsewhere(t *testing.T) {
	user := "bo"
	for name, remove := range map[string]func(r *recalling, first, asked continuo.Conversation) error{
		"delete": func(r *recalling, first, _ continuo.Conversation) error { return r.Log.Delete(r.t.Context(), first.ID) },
		"give away": func(r *recalling, first, _ continuo.Conversation) error {
			_, err := r.Log.Update(r.t.Context(), first.ID, continuo.ConversationChange{UserID: &user})
			return err
		},
		"give the other away": func(r *recalling, _, asked continuo.Conversation) error {
			_, err := r.Log.Update(r.t.Context(), asked.ID, continuo.ConversationChange{UserID: &user})
			return err
		},
		"redact in a fork": func(r *recalling, first, _ continuo.Conversation) error {
			fork, err := r.Log.Fork(r.t.Context(), first.ID, 0, continuo.Conversation{})
			if err != nil {
				return err
			}
			_, err = r.Log.Redact(r.t.Context(), fork, 1, 0, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := storetest.NewMemory()
			r := newScoped(t, store, store, lookup.User, 0)
			first := r.say("trip", "anna", "The password of the harbour gate in Lisbon is marmalade.")
			for i := range 6 {
				r.say(fmt.Sprint("fill", i), "anna", fmt.Sprintf("Step %d: buy tickets and pack the bag.", i))
			}
			r.indexAll()
			asked := r.say("new", "anna", gateQuestion)
			if len(r.blocks(asked)) != 1 {
				t.Fatal("nothing was recalled")
			}
			if err := remove(r, first, asked); err != nil && !errors.Is(err, continuo.ErrNotFound) {
				t.Fatal(err)
			}
			found, err := r.Log.Conversation(t.Context(), asked.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range r.blocks(found) {
				t.Errorf("the block is still %s", block.Content.String())
			}
		})
	}
}

// TestARedactionReachesRecallsOfForks redacts an entry that a fork recalled.
func TestARedactionReachesRecallsOfForks(t *testing.T) {
	r := newRecalling(t, 0)
	c := r.plans("s")
	if _, err := r.Log.Fork(t.Context(), c.ID, 0, continuo.Conversation{Key: "fork"}); err != nil {
		t.Fatal(err)
	}
	fork := r.say("fork", "anna", gateQuestion)
	if len(r.blocks(fork)) != 1 {
		t.Fatal("nothing was recalled")
	}
	if _, err := r.Log.Redact(t.Context(), c, 1, 6, ""); err != nil {
		t.Fatal(err)
	}
	for _, block := range r.blocks(fork) {
		t.Errorf("the fork still shows %s", block.Content.String())
	}
}
