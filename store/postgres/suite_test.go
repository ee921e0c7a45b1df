package postgres

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestSuite(t *testing.T) {
	for name, partitions := range map[string]int{"plain": 0, "partitioned": 4} {
		t.Run(name, func(t *testing.T) {
			if partitions > 0 && os.Getenv("CONTINUO_LONG") == "" {
				t.Skip("SKIPPED: the suite on partitioned tables needs CONTINUO_LONG=1, as in .ci/run")
			}
			storetest.Run(t, func(t *testing.T) storetest.Opener {
				url := newDatabase(t, partitions)
				return func(t *testing.T) maintenance.Store { return openAt(t, url, Options{}) }
			})
		})
	}
}

// times is how often a test repeats what it does: a few times by default, many times with CONTINUO_LONG.
func times(short, long int) int {
	if os.Getenv("CONTINUO_LONG") != "" {
		return long
	}
	return short
}

// newDatabase returns the URL of a database with an empty store.
func newDatabase(t testing.TB, partitions int) string {
	t.Helper()
	server := pgtest.Shared(t)
	template := "plain"
	if partitions > 0 {
		template = fmt.Sprint("partitioned_", partitions)
	}
	server.Template(t, template, func(url string) error {
		store, err := Open(t.Context(), url, Options{Partitions: partitions})
		if err != nil {
			return err
		}
		return store.Close()
	})
	return server.DatabaseFrom(t, template)
}

// openAt opens a store that the caller closes.
func openAt(t testing.TB, url string, options Options) *Store {
	t.Helper()
	store, err := Open(t.Context(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

var sometime = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func newConversation(t testing.TB, store maintenance.Store, id string, last int64) {
	t.Helper()
	c := continuo.Conversation{ID: id, ProjectID: "p", ActiveMode: continuo.ModeChat, LastSeq: last}
	if err := store.Create(context.Background(), c, someEntries(id, 1, last, "text")); err != nil {
		t.Fatal(err)
	}
}

func someEntries(id string, first, last int64, text string) []continuo.Entry {
	var entries []continuo.Entry
	for seq := first; seq <= last; seq++ {
		role := continuo.User
		if seq%2 == 0 {
			role = continuo.Assistant
		}
		entries = append(entries, continuo.Entry{
			ID: fmt.Sprint("ent_0199c5f0d1a27000b8f7c2a94f1e6d3a_", seq), ConversationID: id, Seq: seq, CreatedAt: sometime, Role: role, Content: continuo.Text(text),
		})
	}
	return entries
}
