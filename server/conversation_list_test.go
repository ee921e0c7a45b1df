package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/tool"
)

// listedAs reads a list of conversations, by their keys.
func listedAs(t *testing.T, handler http.Handler, query string) (rows map[string]api.ConversationRow, list api.ConversationList) {
	t.Helper()
	ask(t, handler, "GET", "/api/conversations"+query, "").into(200, &list)
	rows = map[string]api.ConversationRow{}
	for _, row := range list.Data {
		rows[row.Key] = row
	}
	return rows, list
}

// A list is sorted by what its rows say, page by page and over all kinds; a cursor is one of its order.
func TestConversationsAreSorted(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{})
	for i, requests := range []int{1, 3, 0, 2} {
		ask(t, handler, "POST", "/api/conversations", fmt.Sprintf(`{"key": "c%d"}`, i)).into(201, &struct{}{})
		for range requests {
			sendMessage(t, handler, fmt.Sprintf("c%d", i), "hello")
		}
	}
	ask(t, handler, "PATCH", "/api/conversations/c0", `{"title": "changed last"}`).into(200, &struct{}{})
	for _, kind := range []string{"", "&kind=all"} {
		for sort, want := range map[string]string{"tokens": "c1 c3 c0 c2", "created": "c3 c2 c1 c0", "updated": "c0 c3 c2 c1"} {
			for limit := 1; limit <= 4; limit++ {
				var keys []string
				for cursor := ""; ; {
					_, list := listedAs(t, handler, fmt.Sprintf("?sort=%s&limit=%d%s%s", sort, limit, kind, cursor))
					for _, row := range list.Data {
						keys = append(keys, row.Key)
					}
					if !list.HasMore {
						break
					}
					cursor = "&cursor=" + *list.NextCursor
				}
				if got := strings.Join(keys, " "); got != want {
					t.Errorf("pages of %d by %s%s: %s, want %s", limit, sort, kind, got, want)
				}
			}
		}
	}
	_, list := listedAs(t, handler, "?sort=tokens&limit=1")
	for _, other := range []string{"", "&sort=updated"} {
		ask(t, handler, "GET", "/api/conversations?cursor="+*list.NextCursor+other, "").failed(400, "invalid_request", "cursor")
	}
	ask(t, handler, "GET", "/api/conversations?sort=size", "").failed(400, "invalid_request", "sort")
}

func TestConversationRows(t *testing.T) {
	handler := New(newEngine(t, engine.Options{Tools: tool.Set{upper{}}, Policy: tool.Policy{Otherwise: tool.Ask}}), Options{})
	long := strings.Repeat("ü", 300)
	ask(t, handler, "POST", "/chat", `{"session_id": "idle", "message": "hello"}`).into(200, &struct{}{})
	ask(t, handler, "POST", "/chat", `{"session_id": "idle", "message": "again", "model": "other"}`).into(200, &struct{}{})
	ask(t, handler, "POST", "/chat", `{"session_id": "failed", "message": "fail: upstream", "mode": "agent"}`).failed(502, "llm_error", "")
	ask(t, handler, "POST", "/api/conversations", `{"key": "empty"}`).into(201, &struct{}{})
	ask(t, handler, "POST", "/api/conversations", `{"key": "session codex:1"}`)
	ask(t, handler, "POST", "/api/conversations/empty/fork", "{}")
	ask(t, handler, "POST", "/api/conversations/idle/fork", `{"at": 2}`).into(201, &struct{}{})
	ask(t, handler, "POST", "/api/conversations", `{"key": "long"}`).into(201, &struct{}{})
	ask(t, handler, "POST", "/api/conversations/long/entries", `{"role": "user", "content": "`+long+`", "author": {"display_name": "Ada"}}`).into(201, &struct{}{})
	answer := background(t, handler, `{"session_id": "waiting", "message": "use the tool: shout"}`)
	waitForRow(t, handler, "waiting", conversations.StateWaiting)

	rows, _ := listedAs(t, handler, "")
	idle := rows["idle"]
	if idle.State != "idle" || idle.Model != "gpt-4o-mini" || idle.Children != 1 || len(idle.CachedShares) != 2 || idle.Last.Seq != 4 || idle.Last.Role != "assistant" {
		t.Errorf("idle: %+v, last %+v", idle, idle.Last)
	}
	if want := (conversations.Usage{Requests: 2, InputTokens: 100, OutputTokens: 10, UnpricedRequests: 2}); idle.Usage != want {
		t.Errorf("usage %+v, want %+v", idle.Usage, want)
	}
	if failed := rows["failed"]; failed.State != "failed" || failed.Usage.Requests != 1 {
		t.Errorf("failed: %+v", failed)
	}
	if empty := rows["empty"]; empty.State != "idle" || empty.Last != nil || empty.Usage.Requests != 0 || empty.CachedShares == nil {
		t.Errorf("empty: %+v", empty)
	}
	if last := rows["long"].Last; last == nil || last.Text != strings.Repeat("ü", 200) || last.Author.DisplayName != "Ada" {
		t.Errorf("the last words are %+v", last)
	}
	waiting := rows["waiting"]
	if waiting.WaitingFor == nil || waiting.WaitingFor.Call.Name != "test.upper" || waiting.WaitingFor.TurnID == "" {
		t.Errorf("waiting: %+v", waiting)
	}
	for query, want := range map[string][]string{
		"?state=waiting": {"waiting"}, "?state=running": nil, "?state=failed": {"failed"}, "?mode=agent": {"failed"},
		"?model=gpt-4o-mini": {"idle"}, "?client=codex": nil, "?since=2999-01-01T00:00:00Z": nil,
		"?parent_id=" + idle.ID: {""}, "?kind=all&state=failed": {"failed"}, "?kind=task": nil,
	} {
		rows, list := listedAs(t, handler, query+"&totals=true&limit=100")
		var keys []string
		for key := range rows {
			keys = append(keys, key)
		}
		if !slices.Equal(keys, want) || list.Totals == nil {
			t.Errorf("%s: %q", query, keys)
		}
		if query == "?model=gpt-4o-mini" && (list.Totals.Conversations != 1 || list.Totals.InputTokens != 100) {
			t.Errorf("the totals are %+v", list.Totals)
		}
	}
	ask(t, handler, "POST", turnPath("waiting", waiting.WaitingFor.TurnID)+"/approvals", `{"tool_call_id": "call_0", "decision": "deny"}`).into(202, &struct{}{})
	<-answer
	if row := waitForRow(t, handler, "waiting", "idle"); row.WaitingFor != nil {
		t.Errorf("after the decision: %+v", row)
	}
}

// waitForRow reads the list until a conversation has a state: a turn that waits is stored a moment later.
func waitForRow(t *testing.T, handler http.Handler, key, state string) api.ConversationRow {
	t.Helper()
	for {
		if rows, _ := listedAs(t, handler, ""); rows[key].State == state {
			return rows[key]
		}
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
}

func TestConversationFiltersAreChecked(t *testing.T) {
	handler := newServer(t)
	for query, param := range map[string]string{
		"?state=busy": "state", "?model=": "model", "?client=": "client", "?since=today": "since", "?parent_id=": "parent_id", "?mode=x": "mode", "?kind=": "kind",
	} {
		ask(t, handler, "GET", "/api/conversations"+query, "").failed(400, "invalid_request", param)
	}
	ask(t, handler, "GET", "/api/usage?from=x", "").failed(400, "invalid_request", "from")
	ask(t, handler, "GET", "/api/usage?from=2026-11-02&to=2026-11-01", "").failed(400, "invalid_request", "to")
	ask(t, handler, "GET", "/api/usage?from=2026-11-02&to=2026-11-02", "").into(200, &struct{}{})
	ask(t, handler, "GET", "/api/usage?by=day,hour", "").failed(400, "invalid_request", "by")
	ask(t, handler, "GET", "/api/usage?by=day,day", "").failed(400, "invalid_request", "by")
}

func TestAllKindsAreListedInOrder(t *testing.T) {
	handler := newServer(t)
	for i := range 5 {
		ask(t, handler, "POST", "/api/conversations", fmt.Sprintf(`{"key": "k%d"}`, i)).into(201, &continuo.Conversation{})
	}
	var keys []string
	next := ""
	for {
		_, list := listedAs(t, handler, "?kind=all&limit=2"+next)
		for _, row := range list.Data {
			keys = append(keys, row.Key)
		}
		if !list.HasMore {
			break
		}
		next = "&cursor=" + *list.NextCursor
	}
	if !slices.Equal(keys, []string{"k4", "k3", "k2", "k1", "k0"}) {
		t.Errorf("listed %q", keys)
	}
}

func TestUsage(t *testing.T) {
	handler := newServer(t)
	for _, model := range []string{"obedient", "other", "obedient"} {
		ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "hello", "model": "`+model+`"}`).into(200, &struct{}{})
	}
	var list api.All[api.UsageRow]
	ask(t, handler, "GET", "/api/usage", "").into(200, &list)
	requests := map[string]int64{} // of two days where one ends while the test runs
	for _, row := range list.Data {
		requests[row.Model] += row.Requests
	}
	inOrder := slices.IsSortedFunc(list.Data, func(a, b api.UsageRow) int { return strings.Compare(a.Day+a.Model, b.Day+b.Model) })
	if want := map[string]int64{"gpt-4o": 2, "gpt-4o-mini": 1}; !maps.Equal(requests, want) || !inOrder {
		t.Errorf("usage %+v, want %v", list.Data, want)
	}
	ask(t, handler, "GET", "/api/usage?from=2999-01-01", "").into(200, &list)
	if len(list.Data) != 0 {
		t.Errorf("usage %+v", list.Data)
	}
	ask(t, handler, "GET", "/api/usage?user_id=nobody", "").into(200, &list)
	if len(list.Data) != 0 {
		t.Errorf("usage of nobody %+v", list.Data)
	}
}
