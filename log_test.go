package continuo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

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

func TestAPanicInACounterBlocksNobody(t *testing.T) {
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

func TestACancelledAppendThatHasNotBegunLeavesNothing(t *testing.T) {
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
