package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// gated is a store whose appends wait and then, perhaps, fail: time enough for a log to gather a batch.
type gated struct {
	maintenance.Store
	gate chan error // one value for each append: nil lets it pass
}

func (g *gated) Append(ctx context.Context, batch continuo.Batch) error {
	if err := <-g.gate; err != nil {
		return err
	}
	return g.Store.Append(ctx, batch)
}

// result is what one append of a log came to.
type result struct {
	stored []continuo.Entry
	err    error
}

// appendTogether appends the requests in one batch of the log: they gather while another append is under
// way. The gate gets the given values for the batch.
func appendTogether(t *testing.T, requests [][]continuo.Entry, options continuo.AppendOptions, gates ...error) (results []result, log *continuo.Log, id string) {
	t.Helper()
	store := &gated{Store: NewMemory(), gate: make(chan error)}
	log = newLog(store)
	id = newConversation(t, log).ID
	results = make([]result, len(requests))
	var callers sync.WaitGroup
	callers.Go(func() {
		_, _ = log.Append(t.Context(), id, []continuo.Entry{userEntry("first")}, continuo.AppendOptions{})
	})
	synctest.Wait()
	for i := range requests {
		callers.Go(func() {
			stored, err := log.Append(t.Context(), id, requests[i], options)
			results[i] = result{stored, err}
		})
		synctest.Wait()
	}
	store.gate <- nil
	for _, gate := range gates {
		store.gate <- gate
	}
	callers.Wait()
	return results, log, id
}

func TestALogAcknowledgesAKeyOnlyWhenItsEntriesAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request := []continuo.Entry{userEntry("a")}
		results, log, id := appendTogether(t, [][]continuo.Entry{request, request}, continuo.AppendOptions{Key: "k"}, continuo.ErrFull)
		for i, r := range results {
			if !errors.Is(r.err, continuo.ErrFull) {
				t.Errorf("the store refused the batch, but append %d with the key returned %d entries and the error %v", i, len(r.stored), r.err)
			}
		}
		if found := readLog(t, log, id); len(found) != 1 {
			t.Errorf("%d entries are there, want the first alone", len(found))
		}
	})
}

func TestALogAnswersAKeyWithTheEntriesThatWereStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request := []continuo.Entry{userEntry("a")}
		// The first try loses a race, as if another process had written; the second passes.
		results, log, id := appendTogether(t, [][]continuo.Entry{request, request}, continuo.AppendOptions{Key: "k"}, &continuo.ConflictError{Want: 2, Have: 3}, nil)
		found := readLog(t, log, id)
		for i, r := range results {
			if r.err != nil || len(r.stored) != 1 || r.stored[0].ID != found[1].ID {
				t.Errorf("append %d returned %+v, %v; stored is %+v", i, r.stored, r.err, found[1])
			}
		}
	})
}

func TestAnEntryThatCannotBeWrittenFailsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := userEntry("bad")
		bad.Extra = json.RawMessage(`{"no JSON`)
		results, _, _ := appendTogether(t, [][]continuo.Entry{{userEntry("a")}, {bad}, {userEntry("b")}}, continuo.AppendOptions{}, nil)
		for i, r := range results {
			if wantError := i == 1; (r.err != nil) != wantError {
				t.Errorf("request %d: %v", i, r.err)
			}
		}
	})
}

func TestAKeyedEntryThatCannotBeWrittenIsRefused(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("it panics: %v", p)
		}
	}()
	log := newLog(NewMemory())
	bad := userEntry("bad")
	bad.Extra = json.RawMessage(`{"no JSON`)
	if _, err := log.Append(t.Context(), newConversation(t, log).ID, []continuo.Entry{bad}, continuo.AppendOptions{Key: "k"}); err == nil {
		t.Error("an entry that is no JSON was accepted")
	}
}

// TestALogReadsTheSameAfterARestart appends the same entries through one log and through a new log for
// each, and expects the same answers.
func TestALogReadsTheSameAfterARestart(t *testing.T) {
	call := continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("1", "f", "{}")}}
	answer := continuo.Entry{Role: continuo.Tool, ToolCallID: "1", Content: continuo.Text("x")}
	note := continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("for people")}
	hidden := func(e continuo.Entry) continuo.Entry { e.Hidden = true; return e }
	for name, entries := range map[string][]continuo.Entry{
		"a group":                      {userEntry("a"), call, answer, userEntry("b")},
		"a hidden result":              {userEntry("a"), call, hidden(answer), userEntry("b"), answer},
		"hidden calls":                 {userEntry("a"), hidden(call), userEntry("b"), answer, userEntry("c")},
		"a hidden note after a group":  {userEntry("a"), call, answer, hidden(note), answer, userEntry("b")},
		"a hidden note inside a group": {userEntry("a"), call, hidden(note), answer, userEntry("b")},
	} {
		t.Run(name, func(t *testing.T) {
			one, restarted := newLog(NewMemory()), NewMemory()
			oneID, restartedID := newConversation(t, one).ID, newConversation(t, newLog(restarted)).ID
			for i, e := range entries {
				_, oneErr := one.Append(t.Context(), oneID, []continuo.Entry{e}, continuo.AppendOptions{})
				_, restartedErr := newLog(restarted).Append(t.Context(), restartedID, []continuo.Entry{e}, continuo.AppendOptions{})
				if (oneErr == nil) != (restartedErr == nil) {
					t.Errorf("entry %d: the log says %v, and after a restart %v", i, oneErr, restartedErr)
				}
			}
		})
	}
}

func TestOutputRefsAreUnique(t *testing.T) {
	log := newLog(NewMemory())
	id := newConversation(t, log).ID
	seen := map[string]int64{}
	for _, callID := range []string{"a", "a", "a-4", "a", "b/c", "b_c", "a-4"} {
		stored, err := log.Append(t.Context(), id, []continuo.Entry{
			{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall(callID, "f", "{}")}},
			{Role: continuo.Tool, ToolCallID: callID, Content: continuo.Text("x")},
		}, continuo.AppendOptions{})
		noError(t, err)
		if other, twice := seen[stored[1].OutputRef]; twice {
			t.Errorf("entries %d and %d have the output ref %s", other, stored[1].Seq, stored[1].OutputRef)
		}
		seen[stored[1].OutputRef] = stored[1].Seq
	}
}

// racing is a store in which another process always is a little faster, a bounded number of times.
type racing struct {
	maintenance.Store
	rivals int
}

func (r *racing) Append(ctx context.Context, batch continuo.Batch) error {
	if r.rivals > 0 {
		r.rivals--
		rival := userEntry("rival")
		rival.ConversationID, rival.Seq, rival.ID = batch.ConversationID, batch.After+1, fmt.Sprint("rival", r.rivals)
		if err := r.Store.Append(ctx, continuo.Batch{ConversationID: batch.ConversationID, After: batch.After, Entries: []continuo.Entry{rival}}); err != nil {
			return err
		}
	}
	return r.Store.Append(ctx, batch)
}

func TestALogWinsInTheEndAgainstAnotherProcess(t *testing.T) {
	store := &racing{Store: NewMemory()}
	log := newLog(store)
	id := newConversation(t, log).ID
	store.rivals = 10
	stored, err := log.Append(t.Context(), id, []continuo.Entry{userEntry("a")}, continuo.AppendOptions{})
	noError(t, err)
	if stored[0].Seq != 11 || len(readLog(t, log, id)) != 11 {
		t.Errorf("the entry got seq %d", stored[0].Seq)
	}
}
