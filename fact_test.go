package continuo_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// aMemory is a log with a conversation of a user, and the user's memory.
func aMemory(t *testing.T, entries ...continuo.Entry) (*continuo.Log, continuo.Conversation, continuo.Conversation) {
	t.Helper()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := log.Import(t.Context(), continuo.Conversation{UserID: "ada"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := log.Create(t.Context(), continuo.Conversation{UserID: "ada", Kind: continuo.KindMemory, Key: continuo.MemoryKey("ada")})
	if err != nil {
		t.Fatal(err)
	}
	return log, conversation, memory
}

// factFrom is a fact with one source.
func factFrom(conversation continuo.Conversation, seq int64, quote string) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, PartType: continuo.PartFact, Content: continuo.Text("said: " + quote),
		Fact: &continuo.Fact{
			Kind: continuo.FactIdentity, Subject: quote, Attribute: quote, Confidence: 0.5, By: "rules",
			Sources: []continuo.FactSource{{ConversationID: conversation.ID, Seq: seq, Quote: quote}},
		},
	}
}

func TestAFactNeedsAQuoteThatStandsInItsSource(t *testing.T) {
	log, conversation, memory := aMemory(t, user("I live in Oslo, not in Rome."), assistant("Noted."))
	other, err := log.Import(t.Context(), continuo.Conversation{UserID: "bo"}, []continuo.Entry{user("I live in Oslo")})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := log.Fork(t.Context(), conversation.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	good := factFrom(conversation, 1, "I live in Oslo")
	change := func(with func(e *continuo.Entry, f *continuo.Fact)) continuo.Entry {
		e, f := good, *good.Fact
		e.Fact, f.Sources = &f, append([]continuo.FactSource{}, f.Sources...)
		with(&e, &f)
		return e
	}
	refused := map[string]continuo.Entry{
		"another's words":      change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources[0].Quote = "I live in Rome" }),
		"half a word":          change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources[0].Quote = "live in Os" }),
		"an empty quote":       change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources[0].Quote = " " }),
		"no such entry":        change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources[0].Seq = 9 }),
		"no such conversation": change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources[0].ConversationID = "conv_none" }),
		"another user's":       change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources[0].ConversationID = other.ID }),
		"inherited by a fork":  change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources[0].ConversationID = fork.ID }),
		"one source of two": change(func(_ *continuo.Entry, f *continuo.Fact) {
			f.Sources = append(f.Sources, continuo.FactSource{ConversationID: conversation.ID, Seq: 2, Quote: "I live in Oslo"})
		}),
		"no source":            change(func(_ *continuo.Entry, f *continuo.Fact) { f.Sources = nil }),
		"an unknown kind":      change(func(_ *continuo.Entry, f *continuo.Fact) { f.Kind = "rumour" }),
		"no text":              change(func(e *continuo.Entry, _ *continuo.Fact) { e.Content = continuo.Text(" ") }),
		"too sure":             change(func(_ *continuo.Entry, f *continuo.Fact) { f.Confidence = 1.1 }),
		"not a number":         change(func(_ *continuo.Entry, f *continuo.Fact) { f.Confidence = math.NaN() }),
		"derived from too few": change(func(_ *continuo.Entry, f *continuo.Fact) { f.Derived = true }),
	}
	for name, entry := range refused {
		t.Run(name, func(t *testing.T) {
			_, err := log.Append(t.Context(), memory.ID, []continuo.Entry{good, entry}, continuo.AppendOptions{})
			var rule *continuo.RuleError
			if !errors.As(err, &rule) || rule.Rule != continuo.RuleFact || rule.Index != 1 {
				t.Errorf("appended: %v", err)
			}
		})
	}
	if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{good}, continuo.AppendOptions{}); err == nil {
		t.Error("a conversation of a user got a fact")
	}
	stored, err := log.Append(t.Context(), memory.ID, []continuo.Entry{good, stated("I was born in Pisa")}, continuo.AppendOptions{})
	if err != nil || stored[0].Fact.Sources[0].Quote != "I live in Oslo" {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

// stated is a fact that a person states, which is its own source.
func stated(text string) continuo.Entry {
	return continuo.Entry{Role: continuo.User, PartType: continuo.PartFact, Content: continuo.Text(text), Fact: &continuo.Fact{Kind: continuo.FactIdentity, Confidence: 1, By: "person"}}
}

// isGone reports the entries of a memory that still have a text.
func isGone(t *testing.T, log *continuo.Log, memory continuo.Conversation, text string) {
	t.Helper()
	for entry, err := range log.Entries(t.Context(), memory.ID, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := json.Marshal(entry); strings.Contains(string(data), text) {
			t.Errorf("entry %d still says it: %s", entry.Seq, data)
		}
	}
}

func TestAFactGoesWithItsSource(t *testing.T) {
	redact := func(t *testing.T, log *continuo.Log, c continuo.Conversation) error {
		_, err := log.Redact(t.Context(), c, 1, 1, "")
		return err
	}
	bo := "bo"
	for name, remove := range map[string]func(*testing.T, *continuo.Log, continuo.Conversation) error{
		"redacted": redact,
		"redacted through a fork of another user": func(t *testing.T, log *continuo.Log, c continuo.Conversation) error {
			fork, err := log.Fork(t.Context(), c.ID, 0, continuo.Conversation{UserID: bo})
			if err != nil {
				return err
			}
			return redact(t, log, fork)
		},
		"deleted": func(t *testing.T, log *continuo.Log, c continuo.Conversation) error {
			return log.Delete(t.Context(), c.ID)
		},
		"deleted as an item": func(t *testing.T, log *continuo.Log, c continuo.Conversation) error {
			_, err := log.Append(t.Context(), c.ID, []continuo.Entry{continuo.DeletionOf(1, "item")}, continuo.AppendOptions{})
			return err
		},
		"given to another user": func(t *testing.T, log *continuo.Log, c continuo.Conversation) error {
			_, err := log.Update(t.Context(), c.ID, continuo.ConversationChange{UserID: &bo})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, conversation, memory := aMemory(t, user("I live in Oslo"), user("I like tea"))
			profile := continuo.Entry{Role: continuo.System, Hidden: true, PartType: continuo.PartProfile, Content: continuo.Text("- I live in Oslo"), Profile: &continuo.Profile{Facts: []int64{1}}}
			facts := []continuo.Entry{factFrom(conversation, 1, "I live in Oslo"), factFrom(conversation, 2, "I like tea"), profile}
			if _, err := log.Append(t.Context(), memory.ID, facts, continuo.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := remove(t, log, conversation); err != nil {
				t.Fatal(err)
			}
			isGone(t, log, memory, "Oslo")
			kept := 0
			for entry, err := range log.Entries(t.Context(), memory.ID, continuo.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				if entry.Redacted == nil {
					kept++
				} else if entry.Fact != nil && entry.Fact.Sources[0].Seq != entry.Seq {
					t.Errorf("entry %d does not say where it came from: %+v", entry.Seq, entry.Fact)
				}
			}
			if all := name == "deleted" || name == "given to another user"; all && kept != 0 || !all && kept != 1 {
				t.Errorf("%d facts are left", kept)
			}
		})
	}
}

func TestAMemoryHasNoForks(t *testing.T) {
	log, _, memory := aMemory(t)
	if _, err := log.Fork(t.Context(), memory.ID, 0, continuo.Conversation{}); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("forked: %v", err)
	}
}

func TestFactsAreNotImported(t *testing.T) {
	log, conversation, _ := aMemory(t, user("I live in Oslo"))
	imported, err := log.Import(t.Context(), continuo.Conversation{Kind: continuo.KindMemory}, []continuo.Entry{factFrom(conversation, 1, "I live in Rome")})
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range log.Entries(t.Context(), imported.ID, continuo.Range{}) {
		if err != nil || entry.Fact != nil {
			t.Errorf("imported %+v, %v", entry.Fact, err)
		}
	}
}
