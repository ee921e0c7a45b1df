package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/internal/linediff"
)

// compare asks for a comparison, and checks that its parts make both sides.
func compare(t *testing.T, handler http.Handler, left, right string) engine.RequestComparison {
	t.Helper()
	var found engine.RequestComparison
	ask(t, handler, "GET", "/api/compare?left="+url.QueryEscape(left)+"&right="+url.QueryEscape(right), "").into(200, &found)
	lefts, rights, leftTokens := 0, 0, 0
	var before int64
	for _, part := range found.Parts {
		if (part.Left == nil) != (part.Change == contexts.PartInserted) || (part.Right == nil) != (part.Change == contexts.PartRemoved) {
			t.Errorf("%s: left %v, right %v", part.Change, part.Left, part.Right)
		}
		if part.Left != nil {
			lefts++
			leftTokens += part.Left.Tokens
		}
		if part.Right != nil {
			rights++
			if part.Right.Offset < before {
				t.Errorf("the part at %d is behind one at %d", part.Right.Offset, before)
			}
			before = part.Right.Offset
		}
	}
	if lefts != found.Left.Parts || rights != found.Right.Parts || leftTokens != found.Left.Tokens {
		t.Errorf("%d and %d parts, %d tokens; the sides are %+v and %+v", lefts, rights, leftTokens, found.Left, found.Right)
	}
	return found
}

// changes are the parts of a comparison, with their texts, in a line each.
func changes(found engine.RequestComparison) string {
	var lines []string
	for _, part := range found.Parts {
		shown, text := part.Right, part.Text
		if shown == nil {
			shown = part.Left
		}
		for _, word := range part.Words {
			text += map[linediff.Op]string{linediff.Equal: "", linediff.Left: "-", linediff.Right: "+"}[word.Op] + word.Text
		}
		if shown.Kind == "message" {
			lines = append(lines, string(part.Change)+" "+shown.Role+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

func TestTwoRequestsAreCompared(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{})
	said := sendMessage(t, handler, "s", "one")
	sendMessage(t, handler, "s", "two")
	id := said.ConversationID
	found := compare(t, handler, "s~2", id+"~4")
	if want := "same user: one\ninserted assistant: I was shown 4 messages; the newest says \"one\".\ninserted user: two"; changes(found) != want {
		t.Errorf("the parts are\n%s\nwant\n%s", changes(found), want)
	}
	if found.Left.Request != 2 || found.Right.Request != 4 || found.Left.ConversationID != id || !found.Exact || found.Right.Usage == nil || found.Right.Model == "" {
		t.Errorf("the sides are %+v and %+v", found.Left, found.Right)
	}
	// What both have in common ends behind the last part that is the same.
	var bodies [2]struct{ Body json.RawMessage }
	for i, seq := range []string{"2", "4"} {
		ask(t, handler, "GET", "/api/conversations/s/entries/"+seq+"/request", "").into(200, &bodies[i])
	}
	shared := int64(0)
	for shared < int64(min(len(bodies[0].Body), len(bodies[1].Body))) && bodies[0].Body[shared] == bodies[1].Body[shared] {
		shared++
	}
	if found.SharedBytes != shared || found.Left.Bytes != int64(len(bodies[0].Body)) || found.Right.Bytes != int64(len(bodies[1].Body)) {
		t.Errorf("%d of %d and %d bytes are shared, want %d", found.SharedBytes, found.Left.Bytes, found.Right.Bytes, shared)
	}
	same := compare(t, handler, "s~4", "s~4")
	if strings.Contains(changes(same), "inserted") || same.SharedBytes != same.Left.Bytes {
		t.Errorf("a request compared with itself: %s", changes(same))
	}
}

// A request and a view have the same messages in bodies of different members; the words that differ are marked.
func TestViewsAreCompared(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{})
	for _, key := range []string{"a", "b"} {
		ask(t, handler, "POST", "/api/conversations", `{"key": "`+key+`"}`).into(201, &struct{}{})
	}
	ask(t, handler, "POST", "/api/conversations/a/entries", `{"role": "user", "content": "take the old road home"}`).into(201, &struct{}{})
	ask(t, handler, "POST", "/api/conversations/b/entries", `{"role": "user", "content": "take the new road home"}`).into(201, &struct{}{})
	found := compare(t, handler, "a~chat", "b~chat~1")
	if want := "changed user: take the -old+new road home"; changes(found) != want || !found.Exact {
		t.Errorf("the parts are\n%s\nwant\n%s", changes(found), want)
	}
	sendMessage(t, handler, "a", "and then")
	if found = compare(t, handler, "a~chat~2", "a~3"); strings.Contains(changes(found), "inserted") || !strings.Contains(changes(found), "same user: and then") {
		t.Errorf("a view and the request that it became:\n%s", changes(found))
	}
	text := compare(t, handler, "a~codex", "a~replay")
	if text.Exact || text.Right.Protocol != "text" || text.Right.Parts != 1 || text.Right.View != "replay" {
		t.Errorf("a view of messages and one of text: %+v", text.Right)
	}
}

func TestRolesAreCompared(t *testing.T) {
	_, handler := newCrewServer(t)
	sendToCrew(t, handler, "team", "s", "Plant a tree.")
	found := compare(t, handler, "s~role:planner", "s~role:team/builder")
	if found.Left.View != "role:planner" || found.Right.View != "role:builder" || !strings.Contains(changes(found), "I dug.") {
		t.Errorf("%+v and %+v:\n%s", found.Left, found.Right, changes(found))
	}
	ask(t, handler, "GET", "/api/compare?left=s~role:zzz/planner&right=s~role:planner", "").failed(404, "not_found", "left")
	ask(t, handler, "GET", "/api/compare?left=s~role:planner&right=s~role:nobody", "").failed(400, "invalid_request", "right")
}

func TestComparisonsThatAreRefused(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{})
	sendMessage(t, handler, "s", "one")
	for _, test := range []struct {
		left, right string
		status      int
		code, param string
	}{
		{"", "s~2", 400, "invalid_request", "left"},
		{"s~2", "", 400, "invalid_request", "right"},
		{"s", "s~2", 400, "invalid_request", "left"},
		{"s~2", "s~", 400, "invalid_request", "right"},
		{"s~2", "s~0", 400, "invalid_request", "right"},
		{"s~99999999999999999999", "s~2", 400, "invalid_request", "left"},
		{"s~2", "s~wide", 400, "invalid_request", "right"},
		{"s~2", "s~recall", 400, "invalid_request", "right"},
		{"s~codex~x", "s~2", 400, "invalid_request", "left"},
		{"s~2~1", "s~2", 400, "invalid_request", "left"},
		{"s~codex~9", "s~2", 400, "bad_range", "left"},
		{"s~2", "s~77", 400, "bad_range", "right"},
		{"s~1", "s~2", 404, "not_found", "left"},
		{"s~2", "nobody~2", 404, "not_found", "right"},
		{"javascript:alert(1)", "s~2", 400, "invalid_request", "left"},
		{"s~role:planner", "s~2", 404, "not_found", "left"},
	} {
		query := "?left=" + url.QueryEscape(test.left) + "&right=" + url.QueryEscape(test.right)
		ask(t, handler, "GET", "/api/compare"+query, "").failed(test.status, test.code, test.param)
	}
	ask(t, handler, "GET", "/api/compare?left=s~2", "").failed(400, "invalid_request", "right")
}
