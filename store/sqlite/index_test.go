package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"github.com/continuo-log/continuo/store/storetest"
	"pgregory.net/rapid"
)

// indexed makes a conversation whose entries have the same terms each.
func indexed(t testing.TB, store *Store, id string, last int64, terms ...string) {
	t.Helper()
	newConversation(t, store, id, last)
	batch := index.Batch{ConversationID: id, Through: last}
	for seq := int64(1); seq <= last; seq++ {
		batch.Documents = append(batch.Documents, index.Document{Seq: seq, Added: sometime.UnixNano(), Terms: terms})
	}
	if err := store.Index(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
}

// vocabulary lists the terms of the index as FTS5 keeps them.
func vocabulary(t rapid.TB, store *Store) []string {
	t.Helper()
	var found []string
	err := store.write(context.Background(), func(conn *connection) (err error) {
		if err := conn.script(`CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab (main, words, 'row')`); err != nil {
			return err
		}
		found, err = readTexts(conn, `SELECT term FROM temp.vocabulary`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkIndex has FTS5 compare its index with the documents.
func checkIndex(t rapid.TB, store *Store) {
	t.Helper()
	if err := store.write(context.Background(), func(conn *connection) error {
		return conn.script(`INSERT INTO words (words, rank) VALUES ('integrity-check', 1)`)
	}); err != nil {
		t.Fatalf("the index is not that of the documents: %v", err)
	}
}

// TestAnyTermComesThroughUnchanged has the tokenizer take what checkTerm lets pass.
func TestAnyTermComesThroughUnchanged(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{Synchronous: Normal})
	defer store.Close()
	newConversation(t, store, "Ä b_", 1)
	term := rapid.OneOf(
		rapid.StringMatching(`[\p{L}\p{M}\p{Nd}]{1,20}`), rapid.StringMatching(`[a-z0-9\x{80}-\x{10FFFF}]{1,8}`),
		rapid.SampledFrom([]string{"ß", "i\u0307", "数据", "กำ", "か\u3099", "\u200d", "\ufffd", "and", "near"}),
	).Filter(func(s string) bool { return checkTerm(s) == nil })
	rapid.Check(t, func(rt *rapid.T) {
		terms := rapid.SliceOfNDistinct(term, 1, 20, rapid.ID).Draw(rt, "terms")
		if err := store.ForgetIndex(t.Context(), "Ä b_"); err != nil {
			rt.Fatal(err)
		}
		batch := index.Batch{ConversationID: "Ä b_", Through: 1, Documents: []index.Document{{Seq: 1, Added: 1, Terms: terms}}}
		if err := store.Index(t.Context(), batch); err != nil {
			rt.Fatal(err)
		}
		untilPurged(t, store)
		want := append(slices.Clone(terms), "_c_c3_84_20b_5f", "_pp")
		slices.Sort(want)
		if got := vocabulary(rt, store); !slices.Equal(got, want) {
			rt.Fatalf("got the terms %q, want %q", got, want)
		}
		for _, text := range terms {
			for _, prefix := range []bool{false, true} {
				query := index.HitQuery{ConversationID: "Ä b_", Limit: 2, Terms: []index.Term{{Text: text, Prefix: prefix}}}
				if found, err := store.Hits(t.Context(), query); err != nil || len(found) != 1 {
					rt.Fatalf("%q (prefix: %v) is found at %v (%v)", text, prefix, found, err)
				}
			}
		}
	})
}

// untilPurged waits until the writer, which has nothing else to do, has taken the words of all removed
// documents out of the index.
func untilPurged(t *testing.T, store *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for removed := true; removed; {
		if err := store.read(ctx, func(conn *connection) error { return conn.row(anyRemoved, nil, &removed) }); err != nil {
			t.Fatalf("the words of removed documents stay: %v", err)
		}
	}
}

func TestARowIsFreeAndNear(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{Synchronous: Normal})
	defer store.Close()
	newConversation(t, store, "a", 1)
	rapid.Check(t, func(rt *rapid.T) {
		taken := map[int64]bool{}
		for _, run := range rapid.SliceOfN(rapid.IntRange(0, 40), 1, 5).Draw(rt, "runs") {
			begin := rapid.Int64Range(0, 60).Draw(rt, "begin")
			for row := begin; row < begin+int64(run); row++ {
				taken[row] = true
			}
		}
		first := rapid.Int64Range(0, 60).Draw(rt, "first")
		err := store.write(t.Context(), func(conn *connection) error {
			if _, err := conn.exec(`DELETE FROM documents`); err != nil {
				return err
			}
			for row := range taken {
				if _, err := conn.exec(insertDocument, row, "a", row, ""); err != nil {
					return err
				}
			}
			row, err := freeRow(conn, first)
			if err == nil && (taken[row] || row < first || row > first && !taken[row-1]) {
				rt.Errorf("from %d the place %d was found of %v", first, row, taken)
			}
			if _, err := conn.exec(`DELETE FROM documents`); err != nil {
				return err
			}
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// TestRemovalsLeaveNoTrace looks for words in the bytes of the file, and in the index.
func TestRemovalsLeaveNoTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	store, ctx := openAt(t, path, Options{}), t.Context()
	indexed(t, store, "stays", 40, "innocent", "common")
	for _, id := range []string{"redacted", "deleted"} {
		secret := strings.Repeat("zqsecret"+id+" ", 700) // more than a page
		title := "zqsecret title of " + id
		c := continuo.Conversation{ID: id, ProjectID: "p", Title: title, LastSeq: 30}
		all := someEntries(id, 1, 30, secret)
		all[2].TurnID = "t1"
		if err := store.Create(ctx, c, all); err != nil {
			t.Fatal(err)
		}
		turn, err := storetest.BeginTurn(ctx, store, continuo.Turn{ID: "t1", ConversationID: id}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.UpdateTurn(ctx, continuo.TurnUpdate{
			ConversationID: id, TurnID: "t1", Fence: turn.Fence, State: continuo.TurnFinished,
			Events: []continuo.TurnEvent{{ID: 1, Data: fmt.Appendf(nil, `{"text":%q}`, secret)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		batch := index.Batch{ConversationID: id, Through: 30}
		for seq := int64(1); seq <= 30; seq++ {
			batch.Documents = append(batch.Documents, index.Document{Seq: seq, Added: seq, Terms: []string{"common", "zqsecret" + id, "zqsecret"}})
		}
		if err := store.Index(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(vocabulary(t, store), "zqsecret") {
		t.Fatal("there is nothing to remove")
	}
	clean := someEntries("redacted", 1, 30, "removed")
	for i := range clean {
		clean[i].Redacted = &continuo.Redaction{At: sometime}
	}
	clean[2].TurnID = "t1"
	if err := store.Redact(ctx, "redacted", clean); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(vocabulary(t, store), "zqsecretredacted") {
		t.Error("the index still has the words of what was redacted")
	}
	title := "innocent"
	if _, err := store.Update(ctx, "redacted", continuo.ConversationChange{Title: &title}); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(ctx, "deleted"); err != nil {
		t.Fatal(err)
	}
	untilPurged(t, store)
	checkIndex(t, store)
	if got, want := vocabulary(t, store), []string{"_cstays", "_pp", "common", "innocent"}; !slices.Equal(got, want) {
		t.Errorf("the index has the terms %q, want %q", got, want)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte("innocent")) {
		t.Fatalf("the file has not what stays (%v)", err)
	}
	if at := bytes.Index(data, []byte("zqsecret")); at >= 0 {
		t.Errorf("%d traces are left, one at byte %d of %d: %q", bytes.Count(data, []byte("zqsecret")), at, len(data), data[at:at+60])
	}
}

// TestTermsAreRemovedAfterARestart opens a file that another process left with documents to remove.
func TestTermsAreRemovedAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	store := openAt(t, path, Options{})
	indexed(t, store, "a", 50, "word")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	withRaw(t, path, strings.ReplaceAll(hideAll, "?", "'a'"))
	again := openAt(t, path, Options{})
	defer again.Close()
	untilPurged(t, again)
	checkIndex(t, again)
	if left := vocabulary(t, again); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// TestManyDocumentsOfOneTimeAreIndexedFast counts how often a place is looked for.
func TestManyDocumentsOfOneTimeAreIndexedFast(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{Synchronous: Normal})
	defer store.Close()
	indexed(t, store, "a", 4000, "word")
	var row int64
	err := store.write(t.Context(), func(conn *connection) (err error) {
		row, err = freeRow(conn, sometime.UnixNano())
		return err
	})
	if err != nil || row != sometime.UnixNano()+4000 {
		t.Errorf("the next place is %d above the first (%v)", row-sometime.UnixNano(), err)
	}
}

// TestWhatIsHiddenIsNotFound looks for documents whose words are still in the index.
func TestWhatIsHiddenIsNotFound(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{Synchronous: Normal})
	defer store.Close()
	untilPurged(t, store)
	indexed(t, store, "a", 3, "word")
	indexed(t, store, "b", 1, "word")
	err := store.write(t.Context(), func(conn *connection) error {
		_, err := conn.exec(hideAll, "a") // and the writer receives no error
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.Hits(t.Context(), index.HitQuery{ProjectID: "p", Terms: []index.Term{{Text: "word"}}, Limit: 9})
	if err != nil || len(found) != 1 || found[0].ConversationID != "b" {
		t.Errorf("found %v (%v)", found, err)
	}
}
