package continuo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

func newLog(t *testing.T, counter continuo.Counter) (*continuo.Log, continuo.Conversation) {
	t.Helper()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: counter})
	conversation, err := log.Create(context.Background(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	return log, conversation
}

// fragile panics over one word.
type fragile struct{}

func (fragile) Name() string { return "fragile" }
func (fragile) Count(text string) int {
	if strings.Contains(text, "boom") {
		panic("boom")
	}
	return len(text)
}

func TestAPanicInACounterBlocksNoCaller(t *testing.T) {
	log, conversation := newLog(t, fragile{})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			defer func() { _ = recover() }()
			_, _ = log.Append(context.Background(), conversation.ID, []continuo.Entry{user("boom")}, continuo.AppendOptions{})
		})
		all.Go(func() {
			defer func() { _ = recover() }() // the leader of a batch with the word in it
			_, _ = log.Append(context.Background(), conversation.ID, []continuo.Entry{user("fine")}, continuo.AppendOptions{})
		})
	}
	all.Wait()
	if _, err := log.Append(context.Background(), conversation.ID, []continuo.Entry{user("after")}, continuo.AppendOptions{}); err != nil {
		t.Errorf("an append after the panics: %v", err)
	}
}

func TestTailYieldsWhatComesLater(t *testing.T) {
	log, conversation := newLog(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := log.Append(ctx, conversation.ID, []continuo.Entry{user("1"), user("2")}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	next := 2
	for entry, err := range log.Tail(ctx, conversation.ID, 1) {
		if err != nil || entry.Seq != int64(next) {
			t.Fatalf("entry %d, %v; want %d", entry.Seq, err, next)
		}
		if next++; next > 50 {
			break
		}
		go func() { // the tail waits for this
			if _, err := log.Append(ctx, conversation.ID, []continuo.Entry{user("more")}, continuo.AppendOptions{}); err != nil {
				t.Error(err)
			}
		}()
	}
	for _, err := range log.Tail(ctx, "conv_none", 0) {
		if !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("an unknown conversation: %v", err)
		}
	}
}

func TestACancelledAppendThatHasNotBegunWritesNothing(t *testing.T) {
	log, conversation := newLog(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := log.Append(ctx, conversation.ID, []continuo.Entry{user("late")}, continuo.AppendOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if found, err := log.Conversation(context.Background(), conversation.ID); err != nil || found.LastSeq != 0 {
		t.Errorf("%d entries, %v", found.LastSeq, err)
	}
}

// unsure is a store that takes appends only when it is let, and says of the second one that it cannot be
// reached, though it was written.
type unsure struct {
	continuo.Store
	appends int
	entered chan struct{}
	let     chan struct{}
}

func (u *unsure) Append(ctx context.Context, batch continuo.Batch) error {
	u.appends++
	if u.appends == 1 {
		close(u.entered)
		<-u.let
	}
	err := u.Store.Append(ctx, batch)
	if u.appends == 2 && err == nil {
		err = continuo.ErrUnavailable
	}
	return err
}

// TestAnUncertainWriteIsNotRepeated has a store fail after it has written a batch of several requests.
func TestAnUncertainWriteIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &unsure{Store: storetest.NewMemory(), entered: make(chan struct{}), let: make(chan struct{})}
		log := continuo.NewLog(store, continuo.LogOptions{})
		conversation, err := log.Create(t.Context(), continuo.Conversation{})
		if err != nil {
			t.Fatal(err)
		}
		var requests sync.WaitGroup
		begin := func(want error) {
			requests.Go(func() {
				if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{user("hello")}, continuo.AppendOptions{}); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			})
		}
		begin(nil)
		<-store.entered
		for range 3 {
			begin(continuo.ErrUnavailable)
		}
		synctest.Wait() // they wait for the first to be written, and then go together
		close(store.let)
		requests.Wait()
		if found, err := log.Conversation(t.Context(), conversation.ID); err != nil || found.LastSeq != 4 {
			t.Errorf("4 requests left %d entries, %v", found.LastSeq, err)
		}
	})
}

func TestAnImportedConversationHasItsOwnTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Now: func() time.Time { return now }})
	at := func(days int) time.Time { return now.AddDate(0, 0, days) }
	for name, test := range map[string]struct {
		created, updated         time.Time // as the conversation says
		entries                  []time.Time
		wantCreated, wantUpdated time.Time
	}{
		"nothing is known":        {wantCreated: now, wantUpdated: now},
		"by its entries":          {entries: []time.Time{at(-9), at(-8), at(-7)}, wantCreated: at(-9), wantUpdated: at(-7)},
		"in any order":            {entries: []time.Time{at(-7), at(-9)}, wantCreated: at(-9), wantUpdated: at(-7)},
		"as it says itself":       {created: at(-20), updated: at(-3), entries: []time.Time{at(-9)}, wantCreated: at(-20), wantUpdated: at(-3)},
		"without entries":         {created: at(-20), wantCreated: at(-20), wantUpdated: now},
		"an entry without a time": {entries: []time.Time{at(-9), {}}, wantCreated: at(-9), wantUpdated: now},
		"later than today":        {entries: []time.Time{at(-9), at(5)}, wantCreated: at(-9), wantUpdated: now},
		"all later than today":    {created: at(3), updated: at(4), wantCreated: now, wantUpdated: now},
	} {
		t.Run(name, func(t *testing.T) {
			var entries []continuo.Entry
			for _, created := range test.entries {
				entry := user("hello")
				entry.CreatedAt = created
				entries = append(entries, entry)
			}
			made, err := log.Import(t.Context(), continuo.Conversation{CreatedAt: test.created, UpdatedAt: test.updated}, entries)
			if err != nil {
				t.Fatal(err)
			}
			if !made.CreatedAt.Equal(test.wantCreated) || !made.UpdatedAt.Equal(test.wantUpdated) {
				t.Errorf("created %s, updated %s; want %s and %s", made.CreatedAt, made.UpdatedAt, test.wantCreated, test.wantUpdated)
			}
		})
	}
}

func TestAForkIsTheUsersAndHasNoKey(t *testing.T) {
	log, _ := newLog(t, nil)
	parent, err := log.Create(t.Context(), continuo.Conversation{Key: "s1", UserID: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := log.Fork(t.Context(), parent.ID, 0, continuo.Conversation{})
	if err != nil || fork.UserID != "ada" || fork.Key != "" {
		t.Errorf("the fork is %+v (%v)", fork, err)
	}
}

func TestABadUserIDIsRefused(t *testing.T) {
	log, conversation := newLog(t, nil)
	bad := "a\nb"
	_, created := log.Create(t.Context(), continuo.Conversation{UserID: bad})
	_, changed := log.Update(t.Context(), conversation.ID, continuo.ConversationChange{UserID: &bad})
	_, claimed := log.Update(t.Context(), conversation.ID, continuo.ConversationChange{Claim: &bad})
	_, forked := log.Fork(t.Context(), conversation.ID, 0, continuo.Conversation{UserID: bad})
	for what, err := range map[string]error{"create": created, "update": changed, "claim": claimed, "fork": forked} {
		if !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
