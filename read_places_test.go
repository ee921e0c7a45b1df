package continuo_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestEntriesAtAreWhatReadersSee compares single entries of a conversation, and of a fork of it, in random order and more than
// one query asks for, with those that are read one after another; among them are entries larger than a page, redacted ones, and
// places that do not exist.
func TestEntriesAtAreWhatReadersSee(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	var entries []continuo.Entry
	for i := range 700 {
		text := strings.Repeat("ä", 1+i%7)
		if i%200 == 100 {
			text = strings.Repeat("large ", 1<<18)
		}
		entries = append(entries, continuo.Entry{Role: continuo.User, Content: continuo.Text(text)})
	}
	root, err := log.Import(t.Context(), continuo.Conversation{UserID: "ada"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	fork, err := log.Fork(t.Context(), root.ID, 300, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), fork.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("in the fork")}}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	before := fork // its reader does not see what was appended since
	if fork, err = log.Conversation(t.Context(), fork.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Redact(t.Context(), root, 50, 51, ""); err != nil {
		t.Fatal(err)
	}
	var places []continuo.Place
	want := map[string]map[int64]string{}
	for name, c := range map[string]*continuo.Conversation{"root": &root, "fork": &fork, "before": &before} {
		want[name] = map[int64]string{}
		for entry, err := range log.Read(t.Context(), *c, continuo.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			want[name][entry.Seq] = entry.ID
		}
		for seq := int64(-1); seq < 710; seq++ {
			places = append(places, continuo.Place{Conversation: c, Seq: seq})
		}
	}
	rand.New(rand.NewPCG(7, 1)).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	found, err := log.EntriesAt(t.Context(), places)
	if err != nil || len(found) != len(places) {
		t.Fatalf("%d of %d, %v", len(found), len(places), err)
	}
	names := map[*continuo.Conversation]string{&root: "root", &fork: "fork", &before: "before"}
	for i, entry := range found {
		id, expected := "", want[names[places[i].Conversation]][places[i].Seq]
		if entry != nil {
			id = entry.ID
		}
		if id != expected {
			t.Errorf("entry %d of %s is %q, want %q", places[i].Seq, names[places[i].Conversation], id, expected)
		}
		if entry != nil && (entry.Seq == 50 || entry.Seq == 51) && entry.Redacted == nil {
			t.Errorf("entry %d is not redacted", entry.Seq)
		}
	}
	if _, err := log.EntriesAt(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
