package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// longInput is a request's input of many messages; the last one is the user's.
func longInput(messages, words int) string {
	var items []string
	for i := range messages {
		role := []string{"user", "assistant"}[i%2]
		items = append(items, fmt.Sprintf(`{"role":%q,"content":"%s%d"}`, role, strings.Repeat("word ", words), i))
	}
	return "[" + strings.Join(append(items, `{"role":"user","content":"and now?"}`), ",") + "]"
}

// A request with truncation disabled is refused where its view would leave something out, and nothing of it is recorded;
// one without is answered through the view.
func TestTruncation(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	_, got := g.post(t, "/v1/responses", `{"model":"demo","input":`+longInput(400, 3)+`}`)
	id := decode[shownResponse](t, got).ID
	if id == "" {
		t.Fatalf("got %s", got)
	}
	request := func(more string) string {
		return fmt.Sprintf(`{"model":"demo","previous_response_id":%q,"input":"next"%s}`, id, more)
	}
	for _, streamed := range []string{"", `,"stream":true`} {
		response, got := g.post(t, "/v1/responses", request(`,"truncation":"disabled"`+streamed))
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(got, `"code":"context_length_exceeded"`) || !strings.Contains(got, "of the 403 entries") {
			t.Errorf("disabled: got %d %s", response.StatusCode, got)
		}
	}
	if response, got := g.post(t, "/v1/responses", request(`,"truncation":"sometimes"`)); response.StatusCode != http.StatusBadRequest || !strings.Contains(got, `"param":"truncation"`) {
		t.Errorf("an unknown value: got %d %s", response.StatusCode, got)
	}
	response, got := g.post(t, "/v1/responses", request(`,"truncation":"auto"`))
	if response.StatusCode != http.StatusOK {
		t.Fatalf("auto: got %d %s", response.StatusCode, got)
	}
	entries := g.entries(t, response)
	if len(entries) != 404 || entries[403].Round.Window.Start == 1 {
		t.Errorf("the log has %d entries, and the window is %+v", len(entries), entries[len(entries)-1].Round.Window)
	}
	small, got := g.post(t, "/v1/responses", `{"model":"demo","input":"short","truncation":"disabled"}`)
	if small.StatusCode != http.StatusOK {
		t.Errorf("what fits: got %d %s", small.StatusCode, got)
	}
}

// A client's threshold moves the window earlier than the view does.
func TestACompactThresholdMovesTheWindow(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	start := func(more string) int64 {
		_, got := g.post(t, "/v1/responses", `{"model":"demo","input":`+longInput(10, 300)+`}`)
		response, got := g.post(t, "/v1/responses", fmt.Sprintf(`{"model":"demo","previous_response_id":%q,"input":"next"%s}`, decode[shownResponse](t, got).ID, more))
		if response.StatusCode != http.StatusOK || response.Header.Get("X-Continuo-Omitted") != "" {
			t.Fatalf("got %d %s %s", response.StatusCode, response.Header, got)
		}
		entries := g.entries(t, response)
		return entries[len(entries)-1].Round.Window.Start
	}
	if got := start(""); got != 1 {
		t.Errorf("without a threshold the window begins at %d", got)
	}
	if got := start(`,"context_management":[{"type":"compaction","compact_threshold":1500}]`); got <= 1 {
		t.Errorf("with a threshold the window begins at %d", got)
	}
	for _, wrong := range []string{`{"type":"compaction"}`, `[{"type":"compaction","compact_threshold":10}]`} {
		if response, got := g.post(t, "/v1/responses", `{"model":"demo","input":"x","context_management":`+wrong+`}`); response.StatusCode != http.StatusBadRequest || !strings.Contains(got, `"param":"context_management"`) {
			t.Errorf("%s: got %d %s", wrong, response.StatusCode, got)
		}
	}
}
