package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// selfChecking is a store whose engine can check its own files.
type selfChecking interface {
	CheckIntegrity(ctx context.Context, found func(what string)) error
	EntryOwners(ctx context.Context, after string, limit int) ([]string, error)
}

func testIntegrity(t *testing.T, open Opener) {
	store := open(t)
	defer store.Close()
	checking, ok := store.(selfChecking)
	if !ok {
		t.Skip("the store has no engine that could check itself")
	}
	var want []string
	for i := range 20 {
		c := continuo.Conversation{ID: fmt.Sprintf("conv_%02d", i), ProjectID: "p", ActiveMode: continuo.ModeChat}
		var entries []continuo.Entry
		if i%3 != 0 {
			want = append(want, c.ID)
			entries = []continuo.Entry{{ID: "ent_" + c.ID, ConversationID: c.ID, Seq: 1, CreatedAt: day, Role: continuo.User, Content: continuo.Text("hello")}}
			c.LastSeq = 1
		}
		if err := store.Create(t.Context(), c, entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := checking.CheckIntegrity(t.Context(), func(what string) { t.Errorf("a sound store has %s", what) }); err != nil {
		t.Error(err)
	}
	var owners []string
	for after := ""; ; after = owners[len(owners)-1] {
		page, err := checking.EntryOwners(t.Context(), after, 4)
		if err != nil {
			t.Fatal(err)
		}
		if owners = append(owners, page...); len(page) == 0 {
			break
		}
	}
	if !slices.Equal(owners, want) {
		t.Errorf("owners of entries %v, want %v", owners, want)
	}
}

// testDamaged: no write of an entry damages it, a copy keeps the mark of one that is damaged, and a redaction, which
// writes the entry again, removes the mark.
func testDamaged(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	busyConversation(t, store, "a", 5)
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(entry("a", 3))}))
	sameDamage(t, "as written", store, "a")
	kept := records(t, store, "a", 99)
	noError(t, store.PutRecords(ctx, "a", kept))
	sameDamage(t, "put again", store, "a")
	for i := range kept {
		kept[i].Damaged = kept[i].Entry != nil && kept[i].Entry.Seq%2 == 0
	}
	noError(t, store.PutRecords(ctx, "a", kept))
	sameDamage(t, "marked", store, "a", 2, 4)
	sameEntries(t, "a damaged entry can be read", readAll(t, store, "a")[1:2], []continuo.Entry{entry("a", 2)})
	noError(t, store.PutRecords(ctx, "a", records(t, store, "a", 99)))
	sameDamage(t, "a copy of what is marked", store, "a", 2, 4)
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(entry("a", 4))}))
	sameDamage(t, "redacted", store, "a", 2)
}

// sameDamage compares the seqs of the entries that are marked as damaged.
func sameDamage(t *testing.T, what string, store maintenance.Store, id string, want ...int64) {
	t.Helper()
	var have []int64
	for _, r := range records(t, store, id, 99) {
		if r.Damaged {
			have = append(have, r.Position().Seq)
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("%s: entries %v are damaged, want %v", what, have, want)
	}
}
