package postgres

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/jackc/pgx/v5"
)

var update = flag.Bool("update", false, "rewrite docs/schema-postgres.sql")

// TestTheSchemaIsDocumented compares docs/schema-postgres.sql with the migrations.
func TestTheSchemaIsDocumented(t *testing.T) {
	all, err := form.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "-- The schema of a Continuo database (PostgreSQL), version %d: all of store/postgres/migrations.\n", len(all))
	text.WriteString("-- Made by the tests of store/postgres; rewrite it with: go test ./store/postgres -run Schema -update\n")
	text.WriteString(createVersion + ";\n")
	for _, migration := range all {
		text.WriteString("\n" + migration)
	}
	path := filepath.Join("..", "..", "docs", "schema-postgres.sql")
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != text.String() {
		t.Errorf("docs/schema-postgres.sql is not today's schema (%v): run go test ./store/postgres -run Schema -update", err)
	}
}

// TestALockedConversationHoldsUpNoOther has another transaction lock one of two conversations.
func TestALockedConversationHoldsUpNoOther(t *testing.T) {
	url := newDatabase(t, 0)
	store := openAt(t, url, Options{Writers: 1, LockTimeout: time.Hour, StatementTimeout: time.Hour})
	defer store.Close()
	newConversation(t, store, "locked", 0)
	newConversation(t, store, "free", 0)
	locker, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close(context.Background())
	if _, err := locker.Exec(t.Context(), `BEGIN; SELECT FROM continuo.conversations WHERE id = 'locked' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	appended := make(chan error, 1)
	go func() {
		appended <- store.Append(t.Context(), continuo.Batch{ConversationID: "locked", Entries: someEntries("locked", 1, 1, "text")})
	}()
	free := make(chan error, 1)
	go func() {
		var err error
		for seq := int64(1); seq <= 20 && err == nil; seq++ {
			err = store.Append(t.Context(), continuo.Batch{ConversationID: "free", After: seq - 1, Entries: someEntries("free", seq, seq, "text")})
		}
		free <- err
	}()
	select {
	case err := <-free:
		if err != nil {
			t.Error(err)
		}
	case err := <-appended:
		t.Fatalf("the locked conversation was appended to: %v", err)
	case <-time.After(5 * time.Minute):
		t.Error("the other conversation waits for the locked one")
	}
	if _, err := locker.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-appended; err != nil {
		t.Error(err)
	}
}

// TestTwoProcessesAtOneTurn has another process signal and look at a turn, and change its conversation, while
// its owner writes: each of their statements may find the rows changed since it began.
func TestTwoProcessesAtOneTurn(t *testing.T) {
	for _, partitions := range []int{0, 16} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			url := newDatabase(t, partitions)
			owner, other := openAt(t, url, Options{}), openAt(t, url, Options{})
			defer owner.Close()
			defer other.Close()
			newConversation(t, owner, "a", 0)
			turn, err := storetest.BeginTurn(t.Context(), owner, continuo.Turn{ConversationID: "a", ID: "t"}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			var stop atomic.Bool
			var signals atomic.Int64
			var others sync.WaitGroup
			for range 3 {
				others.Go(func() {
					for !stop.Load() {
						if err := other.SignalTurn(context.Background(), "a", "t", continuo.TurnSignal{Kind: continuo.SignalCancel}); err != nil {
							t.Error(err)
							return
						}
						signals.Add(1)
					}
				})
			}
			others.Go(func() {
				for !stop.Load() {
					title := "title"
					if _, err := other.Update(context.Background(), "a", continuo.ConversationChange{Title: &title, UpdatedAt: sometime}); err != nil {
						t.Error(err)
						return
					}
				}
			})
			const rounds = 150
			for n := int64(1); n <= rounds; n++ {
				change := continuo.TurnUpdate{ConversationID: "a", TurnID: "t", Fence: turn.Fence, Events: someEvents(2*n-1, 2*n-1), Lease: time.Hour, Mode: continuo.ModeAgent}
				if n%2 == 0 {
					change.Mode = continuo.ModeChat
				}
				if err := owner.Append(t.Context(), continuo.Batch{ConversationID: "a", After: n - 1, Entries: someEntries("a", n, n, "text"), Turns: []continuo.TurnUpdate{change}}); err != nil {
					t.Error(err)
				}
				change.Events, change.Mode = someEvents(2*n, 2*n), continuo.ModeRun
				if _, err := owner.UpdateTurn(t.Context(), change); err != nil {
					t.Error(err)
				}
			}
			stop.Store(true)
			others.Wait()
			events, err := owner.TurnEvents(t.Context(), "a", "t", 0, 1000)
			if err != nil || len(events) != 2*rounds {
				t.Errorf("%d events, %v", len(events), err)
			}
			seen, err := owner.UpdateTurn(t.Context(), continuo.TurnUpdate{ConversationID: "a", TurnID: "t", Fence: turn.Fence})
			if err != nil || int64(len(seen)) != signals.Load() {
				t.Errorf("%d signals, want %d; %v", len(seen), signals.Load(), err)
			}
		})
	}
}

// TestTheLeaseIsLostAtOnce has one process take a turn from another that appends for it, again and again:
// whatever comes first, an append is whole or not at all.
func TestTheLeaseIsLostAtOnce(t *testing.T) {
	url := newDatabase(t, 0)
	owner, taker := openAt(t, url, Options{}), openAt(t, url, Options{})
	defer owner.Close()
	defer taker.Close()
	newConversation(t, owner, "a", 0)
	seen, err := storetest.BeginTurn(t.Context(), owner, continuo.Turn{ConversationID: "a", ID: "t"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	last, event := int64(0), int64(0)
	for range 100 {
		var appended error
		var both sync.WaitGroup
		both.Go(func() {
			change := continuo.TurnUpdate{ConversationID: "a", TurnID: "t", Fence: seen.Fence, Events: someEvents(event+1, event+1), Mode: continuo.ModeRun}
			appended = owner.Append(context.Background(), continuo.Batch{ConversationID: "a", After: last, Entries: someEntries("a", last+1, last+1, "text"), Turns: []continuo.TurnUpdate{change}})
		})
		taken, err := taker.TakeTurn(t.Context(), seen, "taker", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		both.Wait()
		if appended == nil {
			last, event = last+1, event+1
		} else if !errors.Is(appended, continuo.ErrLeaseLost) {
			t.Fatal(appended)
		}
		conversation, err := owner.Conversation(t.Context(), "a")
		entries, entriesErr := owner.Entries(t.Context(), "a", continuo.EntryQuery{From: 1, To: 1000, Limit: 1000})
		turn, turnErr := owner.Turn(t.Context(), "a", "t")
		if err := errors.Join(err, entriesErr, turnErr); err != nil {
			t.Fatal(err)
		}
		if conversation.LastSeq != last || int64(len(entries)) != last || turn.LastEvent != event {
			t.Fatalf("the conversation is at %d with %d entries, the turn at %d; want %d and %d (%v)", conversation.LastSeq, len(entries), turn.LastEvent, last, event, appended)
		}
		seen = taken
	}
}

// TestTextThatPostgreSQLDoesNotKeep has neighbours in the same groups.
func TestTextThatPostgreSQLDoesNotKeep(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{Writers: 1})
	defer store.Close()
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			id := conversationOf(i)
			newConversation(t, store, id, 0)
			for seq := int64(1); seq <= 8; seq++ {
				bad := someEntries(id, seq, seq, "text")
				bad[0].OutputRef = "a\x00b"
				if err := store.Append(context.Background(), continuo.Batch{ConversationID: id, After: seq - 1, Entries: bad}); !errors.Is(err, continuo.ErrInvalid) {
					t.Errorf("a NUL character: %v", err)
				}
				if err := store.Append(context.Background(), continuo.Batch{ConversationID: id, After: seq - 1, Entries: someEntries(id, seq, seq, "a\x00b")}); err != nil {
					t.Errorf("a NUL character in the content: %v", err)
				}
			}
		})
	}
	writers.Wait()
}

// TestACancelledCallerChangesNothing cancels before the change is taken.
func TestACancelledCallerChangesNothing(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	newConversation(t, store, "a", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := store.Append(ctx, continuo.Batch{ConversationID: "a", Entries: someEntries("a", 1, 1, "text")})
	// The change may have been taken just then; then its result counts.
	c, findErr := store.Conversation(t.Context(), "a")
	if findErr != nil || err == nil && c.LastSeq != 1 || err != nil && (c.LastSeq != 0 || !errors.Is(err, context.Canceled)) {
		t.Errorf("%v, and the conversation is at %d (%v)", err, c.LastSeq, findErr)
	}
}

// TestAppendsOfAGroupAreMadeTogether has one group append to several conversations: those that can be appended to are,
// and the others are refused, also the second append to one of them.
func TestAppendsOfAGroupAreMadeTogether(t *testing.T) {
	for _, partitions := range []int{0, 16} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			store := openAt(t, newDatabase(t, partitions), Options{Writers: 1})
			defer store.Close()
			var group []*queued
			appended := func(id string, after int64) {
				batch := continuo.Batch{ConversationID: id, After: after, Entries: someEntries(id, after+1, after+1, "text of "+id)}
				batch.Entries[0].Role, batch.Entries[0].OutputRef = continuo.Tool, "@tool-output/"+id
				rows, err := encodeEntries(id, after, batch.Entries)
				if err != nil {
					t.Fatal(err)
				}
				c := &change{conversationID: id, key: id}
				c.statement, c.args = appendStatement(batch, rows, nil, 0)
				group = append(group, &queued{change: c, done: make(chan struct{})})
			}
			for _, id := range []string{"a", "b", "c", "d"} {
				newConversation(t, store, id, 0)
			}
			if err := store.Delete(t.Context(), "c"); err != nil {
				t.Fatal(err)
			}
			appended("a", 0)
			appended("a", 1)
			appended("b", 5) // it has no such head
			appended("c", 0) // it is deleted
			appended("d", 0)
			if together, others := joinable(group); len(together) != 4 || len(others) != 1 || others[0] != group[1] {
				t.Fatalf("%d appends together and %d others", len(together), len(others))
			}
			if err := store.writers.each[0].commit(group); err != nil {
				t.Fatal(err)
			}
			for i, want := range []bool{true, true, false, false, true} {
				if group[i].applied != want {
					t.Errorf("append %d to %s: applied %v", i, group[i].conversationID, group[i].applied)
				}
			}
			for id, want := range map[string]int{"a": 2, "b": 0, "d": 1} {
				entries, err := store.Entries(t.Context(), id, continuo.EntryQuery{From: 1, To: 10, OutputRef: "@tool-output/" + id, Limit: 10})
				if err != nil || len(entries) != want {
					t.Errorf("%s has %d entries: %v", id, len(entries), err)
				}
			}
		})
	}
}
