package server

import (
	"strings"
	"testing"
)

// What a hand-off tells can be looked at; no turn can be built by it, because nothing is left of calls to answer.
func TestAHandoffIsOnlyShown(t *testing.T) {
	handler := newServer(t)
	sendMessage(t, handler, "s", "hello")
	var shown struct {
		View     string
		Messages []shownMessage
		Plan     struct {
			Items []struct{ Verdict, Reason string }
		}
	}
	ask(t, handler, "GET", "/api/conversations/s/context?view=handoff&format=openai", "").into(200, &shown)
	if shown.View != "handoff" || len(shown.Messages) != 2 || shown.Messages[0].Content.String() != "hello" || shown.Plan.Items[0].Reason != "latest_user" {
		t.Errorf("shown: %+v", shown)
	}
	var text struct{ Format, Text string }
	ask(t, handler, "GET", "/api/conversations/s/context?view=handoff", "").into(200, &text)
	if text.Format != "handoff" || !strings.Contains(text.Text, "CONVERSATION HISTORY") || !strings.Contains(text.Text, "\n    hello\n") {
		t.Errorf("got %+v", text)
	}
	ask(t, handler, "GET", "/api/conversations/s/context?view=codex&format=handoff", "").failed(400, "invalid_request", "")
	ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "a", "view": "handoff"}`).failed(400, "invalid_request", "view")
}
