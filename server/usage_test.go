package server

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/auth"
)

// Usage is by key and user, and stays when the conversation goes.
func TestUsageByKeyAndUser(t *testing.T) {
	keys := newKeyring(t)
	one, oneShown := keys.newKey("project")
	two, twoShown := keys.newKey("project")
	_, otherShown := keys.newKey("other")
	bound, boundShown := auth.New(one.CreatedAt)
	bound.ProjectID, bound.UserID = "project", "ada"
	if err := keys.CreateKey(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	handler := newKeyedServer(t, keys, Options{})
	chat := func(shown, session, user string) {
		t.Helper()
		body := fmt.Sprintf(`{"session_id": %q, "user_id": %q, "message": "hello"}`, session, user)
		ask(t, handler, "POST", "/chat", body, as(shown)...).into(200, &struct{}{})
	}
	chat(oneShown, "a", "ada")
	chat(oneShown, "a", "ada")
	chat(twoShown, "a", "ada")
	chat(twoShown, "b", "")
	chat(otherShown, "a", "eve")
	chat(boundShown, "c", "")
	row := func(key, user string, requests int) string { return fmt.Sprintf("%s/%s %d", key, user, requests) }
	expect := func(shown, query string, want ...string) {
		t.Helper()
		var list api.All[api.UsageRow]
		ask(t, handler, "GET", "/api/usage"+query, "", as(shown)...).into(200, &list)
		got := map[string]bool{}
		for _, r := range list.Data {
			text := func(s *string) string {
				if s == nil {
					return "*"
				}
				return *s
			}
			got[row(text(r.KeyID), text(r.UserID), int(r.Requests))] = true
			if r.InputTokens == 0 || r.OutputTokens == 0 {
				t.Errorf("%s: no tokens in %+v", query, r)
			}
		}
		for _, w := range want {
			if !got[w] {
				t.Errorf("%s: no %s among %v", query, w, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	all := []string{row(one.ID, "ada", 2), row(two.ID, "ada", 1), row(two.ID, "", 1), row(bound.ID, "ada", 1)}
	expect(oneShown, "?by=key,user", all...)
	expect(oneShown, "?by=key&key_id="+two.ID, row(two.ID, "*", 2))
	expect(oneShown, "?by=user", row("*", "ada", 4), row("*", "", 1))
	expect(oneShown, "?by=user&user_id=ada", row("*", "ada", 4))
	expect(boundShown, "?by=key,user", row(one.ID, "ada", 2), row(two.ID, "ada", 1), row(bound.ID, "ada", 1))
	expect(otherShown, "?by=day", row("*", "*", 1))
	ask(t, handler, "GET", "/api/usage?user_id=bob", "", as(boundShown)...).failed(403, "other_user", "user_id")
	for _, session := range []string{"a", "b"} {
		if status := ask(t, handler, "DELETE", "/api/conversations/"+session, "", as(oneShown)...).status; status != 204 {
			t.Fatalf("delete %s: %d", session, status)
		}
	}
	expect(oneShown, "?by=key,user", all...)
	finished, err := keys.FinishedTurns(t.Context(), continuo.FeedQuery{ProjectID: "project", Limit: 10})
	if err != nil || len(finished) != 5 || finished[0].KeyID != one.ID || !strings.HasPrefix(finished[0].TurnID, "turn_") {
		t.Errorf("%v: %+v", err, finished)
	}
}
