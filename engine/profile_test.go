package engine_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/window"
)

// profiled is an engine with an instruction of anna in its memory.
type profiled struct {
	*recalling
	fact memories.Fact
}

var anna = memories.Owner{UserID: "anna"}

const marmalade = "Always mention marmalade in answers."

func newProfiled(t *testing.T, store maintenance.Store) *profiled {
	p := &profiled{recalling: newScoped(t, store, storetest.NewMemory(), lookup.Conversation, 0)}
	p.fact = p.instruct(anna, marmalade)
	return p
}

func (p *profiled) instruct(owner memories.Owner, text string) memories.Fact {
	p.t.Helper()
	fact, err := p.Memories.Remember(p.t.Context(), continuo.Scope{ProjectID: "default"}, memories.Statement{Owner: owner, Text: text, Kind: continuo.FactInstruction})
	if err != nil {
		p.t.Fatal(err)
	}
	return fact
}

// newest is the request of a conversation's newest answer.
func (p *profiled) newest(c continuo.Conversation) *engine.Replayed {
	p.t.Helper()
	request, err := p.Contexts.Request(p.t.Context(), c, c.LastSeq)
	if err != nil {
		p.t.Fatal(err)
	}
	return request
}

// shows checks whether the newest request has a text, as the last system message, and that it is the one that was sent.
func (p *profiled) shows(c continuo.Conversation, text string, want bool) *engine.Replayed {
	p.t.Helper()
	request := p.newest(c)
	if !request.Same {
		p.t.Error("the request is not the one that was sent")
	}
	if bytes.Contains(request.Body, []byte(text)) != want {
		p.t.Errorf("that the request has %q is not %v: %s", text, want, request.Body)
	}
	return request
}

// profileStores are the stores that each law of profiles holds for.
func profileStores(t *testing.T, test func(t *testing.T, store maintenance.Store)) {
	for name, open := range map[string]func(t *testing.T) (maintenance.Store, error){
		"memory": func(*testing.T) (maintenance.Store, error) { return storetest.NewMemory(), nil },
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
			t.Cleanup(func() { _ = store.Close() })
			test(t, store)
		})
	}
}

func TestARequestShowsTheProfileOfItsUser(t *testing.T) {
	profileStores(t, func(t *testing.T, store maintenance.Store) {
		p := newProfiled(t, store)
		c := p.say("s", "anna", "Good morning.")
		request := p.shows(c, marmalade, true)
		shown := request.Plan.Profile
		if shown == nil || shown.Verdict != window.Kept || shown.Reason != window.ReasonProfile || shown.Size.Tokens < 10 || request.Plan.Totals.PromptSize.Tokens < shown.Size.Tokens {
			t.Fatalf("the plan's profile is %+v of %+v", shown, request.Plan.Totals.PromptSize)
		}
		if ref := request.Round.Window.Profile; ref == nil || *ref != shown.ProfileRef {
			t.Errorf("the round has the profile %+v, not %+v", ref, shown.ProfileRef)
		}
		system := slices.DeleteFunc(slices.Clone(request.Parts), func(part contexts.RequestPart) bool { return part.Kind != "system" })
		if last := system[len(system)-1]; last.Name != "profile" || last.Tokens != shown.Size.Tokens {
			t.Errorf("the last system part is %+v", last)
		}
		tokens := 0
		for _, part := range request.Parts {
			tokens += part.Tokens
		}
		if totals := request.Plan.Totals; tokens != totals.Tokens+totals.PromptSize.Tokens {
			t.Errorf("the parts have %d tokens, the plan %d and %d", tokens, totals.Tokens, totals.PromptSize.Tokens)
		}
		envelope, err := p.Log.Envelope(t.Context(), request.Round.Envelope)
		if err != nil || strings.Contains(strings.Join(envelope.System, "\n"), "marmalade") {
			t.Errorf("the stored envelope has the profile: %v, %v", envelope.System, err)
		}
		p.shows(p.say("other", "bo", "Good morning."), "marmalade", false)
		p.shows(p.say("nobody", "", "Good morning."), "marmalade", false)
	})
}

func TestARequestShowsNoProfileWhereTheViewHasNone(t *testing.T) {
	p := newProfiled(t, storetest.NewMemory())
	c := p.say("s", "anna", "Good morning.")
	for view, want := range map[string]bool{
		window.Continuity: true, window.Codex: true, string(continuo.ModeChat): true, string(continuo.ModeAgent): true, window.Replay: false, "handoff": false, "recall": false,
	} {
		shown, err := p.Contexts.Build(t.Context(), c, engine.ContextRequest{View: view, System: true, Query: map[bool]string{true: "Morning?"}[view == "recall"]})
		if err != nil {
			t.Fatal(err)
		}
		text := shown.Text
		for _, message := range shown.Messages {
			text += string(message)
		}
		if strings.Contains(text, marmalade) != want || (shown.Plan.Profile != nil) != want {
			t.Errorf("the view %s: that it shows the profile is not %v: %s", view, want, text)
		}
	}
}

// TestAProfileChangesOnlyWhenTheWindowMoves states facts in each turn: the system messages of a request are those of the one
// before unless its window moved, and then they have what is known.
func TestAProfileChangesOnlyWhenTheWindowMoves(t *testing.T) {
	p := newProfiled(t, storetest.NewMemory())
	c := p.say("s", "anna", "Good morning.")
	before, moves := p.newest(c), 0
	for i := range 14 {
		p.instruct(anna, fmt.Sprintf("Always mention town%d in answers.", i))
		query := fmt.Sprintf("Step %d: buy tickets and pack the bag.", i)
		ahead, err := p.Contexts.Build(t.Context(), c, engine.ContextRequest{Query: query, System: true})
		if err != nil {
			t.Fatal(err)
		}
		c = p.say("s", "anna", query)
		now := p.newest(c)
		if *ahead.Plan.Profile.Size != *now.Plan.Profile.Size || ahead.Plan.Profile.ProfileRef != now.Plan.Profile.ProfileRef {
			t.Errorf("ahead of request %d the profile is %+v, then %+v", i, ahead.Plan.Profile, now.Plan.Profile)
		}
		if !now.Same {
			t.Errorf("request %d is not the one that was sent", i)
		}
		same := *now.Round.Window.Profile == *before.Round.Window.Profile
		if now.Plan.Moved {
			moves++
		}
		if same == now.Plan.Moved || bytes.Contains(now.Body, fmt.Appendf(nil, "town%d ", i)) != now.Plan.Moved {
			t.Errorf("request %d moved: %v, has the profile of the one before: %v", i, now.Plan.Moved, same)
		}
		if !now.Plan.Moved && !bytes.HasPrefix(now.Body, before.Body[:bytes.LastIndex(before.Body, []byte("]"))]) {
			t.Errorf("request %d does not extend the one before", i)
		}
		before = now
	}
	if moves == 0 {
		t.Error("the window never moved")
	}
	p.replayed(c)
}

func TestAForgottenFactVanishesFromRequests(t *testing.T) {
	profileStores(t, func(t *testing.T, store maintenance.Store) {
		p := newProfiled(t, store)
		p.instruct(anna, "Always mention tangerine in answers.")
		c := p.say("s", "anna", "Good morning.")
		p.shows(c, marmalade, true)
		if err := p.Memories.Forget(t.Context(), continuo.Scope{ProjectID: "default"}, anna, p.fact.ID, false); err != nil {
			t.Fatal(err)
		}
		request := p.newest(c)
		if request.Same || bytes.Contains(request.Body, []byte("marmalade")) || request.Plan.Profile.Reason != window.ReasonProfileRemoved {
			t.Errorf("after forget the request of the past is %v: %s", request.Plan.Profile, request.Body)
		}
		c = p.say("s", "anna", "How are you?")
		p.shows(c, "tangerine", true)
		if next := p.shows(c, "marmalade", false); next.Plan.Moved || next.Round.Window.Epoch != request.Round.Window.Epoch {
			t.Errorf("the window moved: %+v", next.Round.Window)
		}
		if err := p.Memories.ForgetAll(t.Context(), continuo.Scope{ProjectID: "default"}, anna, false); err != nil {
			t.Fatal(err)
		}
		c = p.say("s", "anna", "Are you there?")
		p.shows(c, "tangerine", false)
		p.instruct(anna, "Always mention apricot in answers.")
		p.shows(p.say("s", "anna", "And now?"), "apricot", true)
	})
}

func TestATurnWithoutMemoryHidesTheProfile(t *testing.T) {
	p := newProfiled(t, storetest.NewMemory())
	first := p.newest(p.say("s", "anna", "Good morning."))
	chat, err := p.Turns.Chat(t.Context(), engine.ChatRequest{
		Scope: continuo.Scope{ProjectID: "default", UserID: "anna"}, SessionID: "s", Message: continuo.Text("A secret."), NoMemory: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	lastOf(t, chat)
	c, err := p.Log.Conversation(t.Context(), chat.Conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	hidden := p.shows(c, "marmalade", false)
	if hidden.Plan.Profile == nil || hidden.Plan.Profile.Reason != window.ReasonProfileOff || hidden.Plan.Moved {
		t.Errorf("its plan has %+v", hidden.Plan.Profile)
	}
	next := p.shows(p.say("s", "anna", "And now?"), marmalade, true)
	if *next.Round.Window.Profile != *first.Round.Window.Profile || next.Round.Window.Epoch != first.Round.Window.Epoch {
		t.Errorf("then the window is %+v", next.Round.Window)
	}
}

// TestAProfileOfAnotherUserIsNotShown gives a conversation to another user, and forks one for another user.
func TestAProfileOfAnotherUserIsNotShown(t *testing.T) {
	p := newProfiled(t, storetest.NewMemory())
	p.instruct(memories.Owner{UserID: "bo"}, "Always mention tangerine in answers.")
	c := p.say("s", "anna", "Good morning.")
	fork, err := p.Log.Fork(t.Context(), c.ID, 0, continuo.Conversation{Key: "fork", UserID: "bo"})
	if err != nil {
		t.Fatal(err)
	}
	user := "bo"
	if _, err := p.Log.Update(t.Context(), c.ID, continuo.ConversationChange{UserID: &user}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"s", fork.Key} {
		given := p.say(key, "bo", "How are you?")
		p.shows(given, "marmalade", false)
		p.shows(given, "tangerine", true)
		for _, body := range p.replayed(given) {
			if bytes.Contains(body, []byte("marmalade")) {
				t.Errorf("%s: a request shows %s", key, body)
			}
		}
	}
}

// narrow is a model with a small context window.
type narrow struct{ noted }

func (narrow) Info() model.Info {
	return model.Info{Name: "narrow", Provider: "test", Protocol: model.ProtocolOpenAIChat, ContextWindow: 4_000}
}

// TestAProfileNeverRefusesAMessage sends messages around the size that the model's window holds: each that is accepted gets a
// request that is within the window, without the profile where there is no room for it.
func TestAProfileNeverRefusesAMessage(t *testing.T) {
	p := newProfiled(t, storetest.NewMemory())
	for i := range 12 {
		p.instruct(anna, fmt.Sprintf("Always mention the town of Upper Riverside number %d in answers.", i))
	}
	p.Catalog.Options.Models["demo"] = engine.Upstream{Model: narrow{}}
	accepted, left := 0, 0
	for words := 2_000; words < 4_000; words += 50 {
		chat, err := p.Turns.Chat(t.Context(), engine.ChatRequest{
			Scope: continuo.Scope{ProjectID: "default", UserID: "anna"}, SessionID: fmt.Sprint("s", words), Message: continuo.Text(strings.Repeat("word ", words)),
		})
		if err != nil {
			continue // the message alone is too large
		}
		accepted++
		last := lastOf(t, chat)
		if last.Error != nil {
			t.Fatalf("%d words: %+v", words, last.Error)
		}
		c, err := p.Log.Conversation(t.Context(), chat.Conversation.ID)
		if err != nil {
			t.Fatal(err)
		}
		request := p.newest(c)
		if size := request.Plan.Totals; !request.Same || size.Tokens+size.PromptSize.Tokens > 4_000 {
			t.Errorf("%d words: the request has %d and %d tokens, the same: %v", words, size.Tokens, size.PromptSize.Tokens, request.Same)
		}
		if request.Plan.Profile.Verdict == window.Excluded {
			left++
			if request.Plan.Profile.Reason != window.ReasonOverTokens {
				t.Errorf("%d words: it is left out because of %s", words, request.Plan.Profile.Reason)
			}
		}
	}
	if accepted < 5 || left == 0 || left == accepted {
		t.Errorf("%d messages were accepted, %d without the profile", accepted, left)
	}
}

// TestCopiesAndArchivesHaveProfiles copies a store, and archives and restores a conversation: the requests are those that were
// sent.
func TestCopiesAndArchivesHaveProfiles(t *testing.T) {
	from, objects := storetest.NewMemory(), storetest.NewObjects()
	p := newProfiled(t, from)
	c := p.say("s", "anna", "Good morning.")
	to, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "copy.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := (&maintenance.Copier{From: from, To: to}).Copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	copied := &profiled{recalling: newScoped(t, to, storetest.NewMemory(), lookup.Conversation, 0)}
	copied.shows(c, marmalade, true)
	archivist := maintenance.Archivist{Store: from, Objects: objects}
	if _, err := archivist.Archive(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := archivist.Restore(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	p.shows(p.say("s", "anna", "And now?"), marmalade, true)
	p.shows(c, marmalade, true)
}
