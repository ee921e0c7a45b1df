package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// auditWriters is how many clients change conversations at once while the program is killed.
const auditWriters = 6

// auditedChange is a change whose answer a client has.
type auditedChange struct{ operation, conversation string }

// A change that was answered is in the audit log, however the program was killed. A change without an answer may have no event,
// and each event is of a change that was made.
func TestKilledChangesAreAudited(t *testing.T) {
	t.Parallel()
	kills := rounds(4, 60)
	t.Run("sqlite", func(t *testing.T) { testAuditKills(t, "", kills) })
	t.Run("postgresql", func(t *testing.T) {
		testAuditKills(t, pgtest.Start(t, pgtest.Options{Durable: true}).Database(t), kills)
	})
}

func testAuditKills(t *testing.T, storeURL string, kills int) {
	random := killTest(t)
	h := newHome(t, startScripted(t))
	h.storeURL = storeURL
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	answered := map[auditedChange]int{}
	for kill := range kills {
		k := h.launch(t)
		k.ready(t)
		var mu sync.Mutex
		var writing sync.WaitGroup
		enough := make(chan struct{}) // closed when so many changes were answered
		left := 20 + random.IntN(200)
		record := func(operation, conversation string) {
			mu.Lock()
			defer mu.Unlock()
			answered[auditedChange{operation, conversation}]++
			if left--; left == 0 {
				close(enough)
			}
		}
		for range auditWriters {
			writing.Go(func() {
				for changeOne(ctx, k, record) {
				}
			})
		}
		select {
		case <-enough:
		case <-ctx.Done():
			t.Fatal("the program answers no changes")
		}
		k.kill(t)
		writing.Wait()
		last := h.launch(t)
		last.ready(t)
		checkAudited(ctx, t, last, answered)
		last.kill(t)
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	t.Logf("%d kills, %d different changes were answered", kills, len(answered))
}

// changeOne makes, changes and deletes a conversation, and records what was answered. It returns false when the
// program is gone.
func changeOne(ctx context.Context, k *killable, record func(operation, conversation string)) bool {
	id := ""
	for _, step := range []struct {
		operation, method string
		body              any
	}{
		{"createConversation", http.MethodPost, map[string]any{}},
		{"changeConversation", http.MethodPatch, map[string]any{"title": "a title"}},
		{"appendEntries", http.MethodPost, map[string]any{"entries": []any{map[string]any{"role": "user", "content": "hello"}}}},
		{"deleteConversation", http.MethodDelete, nil},
	} {
		path := "/api/conversations"
		if id != "" {
			path += "/" + id
		}
		if step.operation == "appendEntries" {
			path += "/entries"
		}
		response, err := k.do(ctx, step.method, path, step.body)
		if err != nil {
			return false
		}
		if step.operation == "createConversation" {
			var made struct{ ID string }
			err = json.NewDecoder(response.Body).Decode(&made)
			id = made.ID
		}
		_ = response.Body.Close()
		if response.StatusCode >= http.StatusBadRequest {
			panic(fmt.Sprintf("%s is refused with %s", step.operation, response.Status))
		}
		if id == "" { // the answer was cut off: its status was acknowledged, but whose it is is not known
			return err == nil
		}
		record(step.operation, id)
	}
	return true
}

// checkAudited compares the audit log with the changes that were answered, and with the conversations that exist.
func checkAudited(ctx context.Context, t *testing.T, k *killable, answered map[auditedChange]int) {
	t.Helper()
	recorded := map[auditedChange]int{}
	for after := "0"; ; {
		var page struct {
			Data []struct {
				Operation      string `json:"operation"`
				ConversationID string `json:"conversation_id"`
				Status         int    `json:"status"`
			}
			HasMore bool `json:"has_more"`
			Next    string
		}
		if status, err := k.get(ctx, "/api/audit?limit=1000&after="+after, &page); err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
		for _, event := range page.Data {
			if event.Status < http.StatusBadRequest {
				recorded[auditedChange{event.Operation, event.ConversationID}]++
			}
		}
		if after = page.Next; !page.HasMore {
			break
		}
	}
	for change := range answered {
		if recorded[change] == 0 {
			t.Errorf("%s of %s was answered and is not in the audit log", change.operation, change.conversation)
		}
	}
	for change := range recorded {
		if change.operation != "deleteConversation" {
			continue
		}
		var found struct{}
		if status, err := k.get(ctx, "/api/conversations/"+change.conversation, &found); err != nil || status != http.StatusNotFound {
			t.Errorf("the deletion of %s is in the audit log, and it answers %d, %v", change.conversation, status, err)
		}
	}
}
