package engine_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/window"
)

// TestPastRequestsDoNotDependOnTheRanking builds them again after the index was made again, by engines that would recall
// everything, nothing, and that cannot rank at all: whatever the weights are, no past request asks for them.
func TestPastRequestsDoNotDependOnTheRanking(t *testing.T) {
	r := newRecalling(t, 0)
	r.plans("s")
	c := r.say("s", "anna", "What is the password of the harbour gate in Lisbon?")
	blocks := 0
	for _, entry := range r.entries(c) {
		if entry.Recall != nil {
			blocks++
		}
	}
	if blocks == 0 {
		t.Fatal("nothing was recalled: the test shows nothing")
	}
	before := r.replayed(c)
	if err := r.index.ForgetIndex(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := (index.Indexer{Log: r.Log, Store: r.index}).Run(t.Context(), index.Scope{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]engine.Options{
		"everything is recalled": {Index: r.index, RecallThreshold: 1},
		"nothing is recalled":    {Index: r.index, RecallThreshold: 1_000_000},
		"without an index":       {},
	} {
		views := window.DefaultSettings()
		views.ChatMaxMessages, views.ChatMaxTokens, views.ChatFollowsWindow = 8, 900, false
		options.Models, options.Default, options.Views = map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, "demo", &views
		e, err := engine.New(r.Log, options, nil)
		if err != nil {
			t.Fatal(err)
		}
		again := &recalling{testEngine: &testEngine{e, r.Log}, t: t, index: r.index}
		after := again.replayed(c)
		if len(after) != len(before) {
			t.Fatalf("%s: %d requests, before %d", name, len(after), len(before))
		}
		for i := range before {
			if !bytes.Equal(before[i], after[i]) {
				t.Errorf("%s: request %d is another one", name, i)
			}
		}
	}
}
