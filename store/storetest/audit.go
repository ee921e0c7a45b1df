package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
)

// auditEvent is an event of an hour.
func auditEvent(hour int, project, key, operation, conversation string) audit.Event {
	return audit.Event{
		At: time.Date(2026, 3, 1, hour, 0, 0, 7, time.UTC), Operation: operation, ConversationID: conversation, Target: "t", Status: 200, Count: 2,
		Caller: audit.Caller{Origin: audit.OriginHTTP, ProjectID: project, KeyID: key, SessionID: "s", UserID: "ada", Remote: "192.0.2.1", RequestID: "r"},
	}
}

func testAudit(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	last, err := store.LastAudit(ctx)
	noError(t, err)
	same(t, "the last position of none", last, int64(0))
	_, err = store.AuditEvents(ctx, audit.Query{})
	expectError(t, "a page of nothing", err, continuo.ErrInvalid)
	all := []audit.Event{
		auditEvent(1, "p", "k1", "deleteConversation", "a"), auditEvent(2, "p", "", "getConversation", "b"), auditEvent(3, "q", "k2", "getConversation", "a"),
		auditEvent(4, "p", "k1", "getConversation", ""), auditEvent(5, "p", "k2", "createKey", ""),
	}
	noError(t, store.AddAudit(ctx, nil))
	noError(t, store.AddAudit(ctx, all[:3]))
	noError(t, store.AddAudit(ctx, all[3:]))
	bad := all[0]
	bad.ConversationID = "a\x00"
	expectError(t, "an event that cannot be stored", store.AddAudit(ctx, []audit.Event{all[0], bad}), continuo.ErrInvalid)
	store = open(t, opener)
	read := func(query audit.Query, want ...int) (position int64) {
		t.Helper()
		if query.Limit == 0 {
			query.Limit = 10
		}
		got, err := store.AuditEvents(ctx, query)
		noError(t, err)
		if len(got) != len(want) {
			t.Fatalf("%+v finds %+v, want %v", query, got, want)
		}
		for i, at := range want {
			if got[i].Position <= position {
				t.Errorf("position %d after %d", got[i].Position, position)
			}
			position = got[i].Position
			event := all[at]
			event.Position = position
			same(t, "the event", got[i], event)
		}
		return position
	}
	highest := read(audit.Query{}, 0, 1, 2, 3, 4)
	second := read(audit.Query{Limit: 2}, 0, 1)
	read(audit.Query{After: second, Limit: 2}, 2, 3)
	read(audit.Query{Newest: true, Limit: 2}, 3, 4)
	read(audit.Query{ProjectID: "p"}, 0, 1, 3, 4)
	read(audit.Query{ProjectID: "p", KeyID: new("k1")}, 0, 3)
	read(audit.Query{KeyID: new("")}, 1)
	read(audit.Query{ProjectID: "p", ConversationID: "a"}, 0)
	read(audit.Query{Operation: "getConversation"}, 1, 2, 3)
	read(audit.Query{From: all[1].At, To: all[3].At}, 1, 2)
	last, err = store.LastAudit(ctx)
	noError(t, err)
	same(t, "the last position", last, highest)
	prune := func(hour, limit, want int) {
		t.Helper()
		removed, err := store.PruneAudit(ctx, auditEvent(hour, "", "", "", "").At, limit)
		noError(t, err)
		same(t, "removed", removed, want)
	}
	prune(4, 2, 2)
	read(audit.Query{}, 2, 3, 4)
	prune(9, 10, 3)
	read(audit.Query{})
	noError(t, store.AddAudit(ctx, all[:1]))
	if again := read(audit.Query{}, 0); again <= highest {
		t.Errorf("position %d was used again", again)
	}
}

// testAuditAtOnce adds events from two stores while a reader follows: it gets each of them.
func testAuditAtOnce(t *testing.T, opener Opener) {
	const writers, each = 6, 15
	stores, ctx := [2]audit.Store{open(t, opener), open(t, opener)}, t.Context()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				if err := stores[w%2].AddAudit(ctx, []audit.Event{auditEvent(1, "p", fmt.Sprint(w), "x", fmt.Sprint(n)), auditEvent(1, "p", fmt.Sprint(w), "x", fmt.Sprint(n))}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); all.Wait() }()
	after, count := int64(0), 0
	for ended := false; ; {
		page, err := stores[1].AuditEvents(ctx, audit.Query{After: after, Limit: 7})
		noError(t, err)
		for _, e := range page {
			after, count = e.Position, count+1
		}
		if len(page) > 0 {
			continue
		}
		if ended {
			break
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	same(t, "the events that a reader got", count, 2*writers*each)
}
