package continuo_test

import (
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestDeletedEntriesAreKnown in the conversation, in what is forked from it later, and after an import.
func TestDeletedEntriesAreKnown(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	said := func(text string) continuo.Entry {
		return continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
	}
	c, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{said("a"), said("b"), continuo.DeletionOf(1, "x"), said("c")})
	if err != nil {
		t.Fatal(err)
	}
	fork := func(of continuo.Conversation, at int64) continuo.Conversation {
		t.Helper()
		made, err := log.Fork(t.Context(), of.ID, at, continuo.Conversation{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	remove := func(in continuo.Conversation, seq int64) continuo.Conversation {
		t.Helper()
		if _, err := log.Append(t.Context(), in.ID, []continuo.Entry{continuo.DeletionOf(seq, "x"), continuo.DeletionOf(seq, "y")}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		now, err := log.Conversation(t.Context(), in.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	before := fork(c, 2)
	c = remove(c, 2)
	between := fork(c, 0)
	c = remove(c, 4)
	between = remove(between, 2)
	for name, test := range map[string]struct {
		in   continuo.Conversation
		want []int64
	}{
		"the conversation":           {c, []int64{1, 2, 4}},
		"a fork before all":          {before, nil},
		"a fork between":             {between, []int64{1, 2}},
		"a fork of the fork between": {fork(between, 0), []int64{1, 2}},
	} {
		found, err := log.Deleted(t.Context(), test.in, []int64{1, 2, 3, 4})
		if slices.Sort(found); err != nil || !slices.Equal(slices.Compact(found), test.want) {
			t.Errorf("%s: %v, %v, want %v", name, found, err, test.want)
		}
	}
}

// TestAGroupIsDeletedAsAWhole: the call, its results, and nothing beside them.
func TestAGroupIsDeletedAsAWhole(t *testing.T) {
	for name, test := range map[string]struct{ deleted, want []int64 }{
		"the answer":   {[]int64{2}, []int64{2, 3, 4}},
		"a result":     {[]int64{4}, []int64{2, 3, 4}},
		"the message":  {[]int64{1}, []int64{1}},
		"what is next": {[]int64{5}, []int64{5}},
	} {
		log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
		entries := []continuo.Entry{
			{Role: continuo.User, Content: continuo.Text("look")},
			{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("a", "look", "{}"), continuo.FunctionCall("b", "look", "{}")}},
			{Role: continuo.Tool, ToolCallID: "a", Content: continuo.Text("one")},
			{Role: continuo.Tool, ToolCallID: "b", Content: continuo.Text("two")},
			{Role: continuo.Assistant, Content: continuo.Text("done")},
		}
		for _, seq := range test.deleted {
			entries = append(entries, continuo.DeletionOf(seq, "x"))
		}
		c, err := log.Import(t.Context(), continuo.Conversation{}, entries)
		if err != nil {
			t.Fatal(err)
		}
		found, err := log.Deleted(t.Context(), c, []int64{1, 2, 3, 4, 5, 6, 7, 8})
		if err != nil || !slices.Equal(found, test.want) {
			t.Errorf("%s: %v, %v, want %v", name, found, err, test.want)
		}
	}
}
