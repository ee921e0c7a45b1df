package engine_test

import (
	"math"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/window"
)

// TestRecallsAreExplained: what is said of a message is what its turn does, and the features add up to the score.
func TestRecallsAreExplained(t *testing.T) {
	r := newRecalling(t, 0)
	c := r.plans("s")
	explain := func(query string, of recalls.ExplainRequest) *recalls.Explanation {
		t.Helper()
		made, err := r.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{View: window.Continuity, Query: query}, of)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	const question = "What is the password of the harbour gate in Lisbon?"
	made := explain(question, recalls.ExplainRequest{})
	if made.Outcome != recalls.Recalled || made.View != window.Continuity || len(made.Entries) == 0 || made.Entries[0].Rank != 1 {
		t.Fatalf("the question: %+v", made)
	}
	explained := map[int64]bool{}
	for _, entry := range explain(question, recalls.ExplainRequest{Limit: 100}).Entries {
		odds := 0.0
		for _, part := range entry.Features {
			odds += part.Adds
		}
		if share := 1e6 / (1 + math.Exp(-odds)); math.Abs(share-float64(entry.Score)) > 2_000 {
			t.Errorf("entry %d has the score %d, its features give %.0f", entry.Seq, entry.Score, share)
		}
		if entry.Outcome == recalls.Recalled {
			explained[entry.Seq] = true
		}
	}
	last := explain(question, recalls.ExplainRequest{Seq: c.LastSeq})
	if got := last.Entries[0]; len(last.Entries) != 1 || got.Seq != c.LastSeq || got.Outcome == recalls.Recalled {
		t.Errorf("the newest entry: %+v", last.Entries)
	}
	for query, want := range map[string]recalls.Outcome{"and so on?": recalls.NoQuestion, "/model harbour": recalls.NoQuestion, "/add a.go\n\n!ls": recalls.NoQuestion, "Buy more!": recalls.TooLittle} {
		if made := explain(query, recalls.ExplainRequest{}); made.Outcome != want {
			t.Errorf("%q: %s, want %s", query, made.Outcome, want)
		}
	}
	c = r.say("s", "anna", question)
	for _, entry := range r.entries(c) {
		if entry.HoldsRecall() {
			for _, item := range entry.Recall.Items {
				if !explained[item.Seq] {
					t.Errorf("the turn recalled %d, which was explained otherwise", item.Seq)
				}
				delete(explained, item.Seq)
			}
		}
	}
	if len(explained) > 0 {
		t.Errorf("the turn did not recall %v", explained)
	}
	if _, err := r.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{View: window.Continuity, Query: "x"}, recalls.ExplainRequest{Seq: c.LastSeq + 1}); err == nil {
		t.Error("an entry that does not exist is explained")
	}
	if made, err := r.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{View: window.Replay, Query: question}, recalls.ExplainRequest{}); err != nil || made.Outcome != recalls.SwitchedOff {
		t.Errorf("in a view without recalls: %+v, %v", made, err)
	}
}

// TestMessagesThatAskNothingRecallLess: the odds must be four times as high.
func TestMessagesThatAskNothingRecallLess(t *testing.T) {
	r := newRecalling(t, 0)
	c := r.plans("s")
	for query, want := range map[string]int{
		"What is the password of the harbour gate?": recalls.DefaultThreshold,
		"The password of the harbour gate is long.": 413_793,
	} {
		made, err := r.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{View: window.Continuity, Query: query}, recalls.ExplainRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if made.Threshold != want {
			t.Errorf("%q: the threshold is %d, want %d", query, made.Threshold, want)
		}
	}
}

// TestAShortConversationAnswersQuestions: no single word weighs much there. What asks nothing, and words that several entries
// have, recall nothing; the turn does what is explained.
func TestAShortConversationAnswersQuestions(t *testing.T) {
	var entries []continuo.Entry
	for i, text := range []string{
		"I want to plant a vegetable garden this spring.", "Lovely. How large is the bed?",
		"Four metres by two, and it lies in the sun until noon.", "Then potatoes, beans and lettuce will do well there.",
		"My neighbour swears by Annabelle: she says those early potatoes are ready in June.", "Annabelle is a good choice; plant it in April.",
		"How do I keep slugs away from the lettuce?", "Put copper tape around the bed, and water in the morning.",
		"And what about the beans?", "Sow them in the middle of May, when it does not freeze any more.",
		"Thanks, I will buy the copper tape tomorrow.", "Good luck with the garden.", "The tape was sold out.", "Try a beer trap instead.",
	} {
		entries = append(entries, continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(text)})
	}
	r := newRecalling(t, 0)
	c, err := r.Log.Import(t.Context(), continuo.Conversation{ProjectID: "default", Key: "s", UserID: "anna"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]recalls.Outcome{
		"Which potatoes are early?":        recalls.Recalled,
		"What did my neighbour recommend?": recalls.Recalled,
		"Thanks for the early potatoes!":   recalls.TooLittle,
		"What about lettuce?":              recalls.TooLittle,
		"What should I cook today?":        recalls.TooLittle,
	} {
		made, err := r.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{View: window.Continuity, Query: query}, recalls.ExplainRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if made.Outcome != want {
			t.Errorf("%q: %s, want %s: %+v", query, made.Outcome, want, made.Entries)
		}
	}
	c = r.say("s", "anna", "Which potatoes are early?")
	if blocks := r.entries(c); !slices.ContainsFunc(blocks, func(e continuo.Entry) bool { return e.HoldsRecall() && e.Recall.Items[0].Seq == 5 }) {
		t.Error("the turn did not recall what was explained")
	}
}
