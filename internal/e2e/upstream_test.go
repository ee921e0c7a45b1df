package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is an upstream that gives its answers in order and keeps the requests.
type recorder struct {
	mu       sync.Mutex
	answers  []string // a body of events, or an error body with the status 400
	requests []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, string(body))
	if len(r.answers) == 0 {
		http.Error(w, "no more answers", http.StatusTeapot)
		return
	}
	answer := r.answers[0]
	r.answers = r.answers[1:]
	if strings.HasPrefix(answer, `{"error"`) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
	} else {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	fmt.Fprint(w, answer)
}

// Items of the new protocols as a provider makes them: members in an order of its own, escapes, unknown members.
const (
	reasoningItem = `{"id":"rs_1","encrypted_content":"gAAA\u0042+/=","type":"reasoning","summary":[{"type":"summary_text","text":"<look>"}],"acme":{"b":1,"a":null}}`
	callItem      = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\": \"@state\"}","call_id":"call_1","name":"fs_list"}`
	signedPart    = `{"thoughtSignature":"c2ln\u0042+/=","functionCall":{"id":"fc-1","name":"fs_list","args":{"path":"@state"}}}`
)

// What a provider wants back goes back to it byte for byte, in the same turn and in the next one, also from the store.
func TestReasoningGoesBack(t *testing.T) {
	t.Parallel()
	created := `data: {"type":"response.created","sequence_number":0,"response":{"id":"r","status":"in_progress","model":"m"}}` + "\n\n"
	done := func(index int, item string) string {
		return fmt.Sprintf(`data: {"type":"response.output_item.done","sequence_number":1,"output_index":%d,"item":%s}`+"\n\n", index, item)
	}
	completed := `data: {"type":"response.completed","sequence_number":9,"response":{"id":"r","status":"completed","model":"m","output":[]}}` + "\n\n"
	message := `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Empty.","annotations":[]}]}`
	piece := func(part, finish string) string {
		return fmt.Sprintf(`data: {"candidates":[{"index":0,"content":{"role":"model","parts":[%s]},"finishReason":%q}]}`+"\n\n", part, finish)
	}
	for _, test := range []struct {
		protocol string
		answers  []string
		back     []string // in the second request and in the third
	}{
		{"responses", []string{created + done(0, reasoningItem) + done(1, callItem) + completed, created + done(0, message) + completed, created + done(0, message) + completed}, []string{reasoningItem + "," + callItem}},
		{"gemini", []string{piece(signedPart, "STOP"), piece(`{"text":"Empty."}`, "STOP"), piece(`{"text":"Empty."}`, "STOP")}, []string{signedPart, `{"functionResponse":{"id":"fc-1","name":"fs_list",`}},
	} {
		t.Run(test.protocol, func(t *testing.T) {
			upstream := &recorder{answers: test.answers}
			server := httptest.NewServer(upstream)
			defer server.Close()
			s := serve(t, "model: m\nmodels:\n"+modelSettings("m", test.protocol, server.URL)+turnSettings("retries: 0"))
			for _, question := range []string{"What is there?", "Sure?"} {
				if got := s.ask(t, "s", "m", question, true); got.answer.Error != nil || got.answer.Response != "Empty." {
					t.Fatalf("%s: got %+v, %+v", question, got, got.answer.Error)
				}
			}
			if len(upstream.requests) != 3 {
				t.Fatalf("%d requests: %q", len(upstream.requests), upstream.requests)
			}
			for _, request := range upstream.requests[1:] {
				for _, want := range test.back {
					if !strings.Contains(request, want) {
						t.Errorf("the request\n%s\nhas not\n%s", request, want)
					}
				}
			}
		})
	}
}

// A model without reasoning refuses to be asked for it: it is asked again without, and from then on.
func TestAModelWithoutEncryptedReasoning(t *testing.T) {
	t.Parallel()
	refusal := `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`
	upstream := &recorder{answers: []string{refusal, responseText + responseEnd, responseText + responseEnd}}
	server := httptest.NewServer(upstream)
	defer server.Close()
	s := serve(t, "model: m\nmodels:\n"+modelSettings("m", "responses", server.URL)+turnSettings("retries: 0"))
	for range 2 {
		if got := s.ask(t, "s", "m", "hello", true); got.answer.Error != nil || got.answer.Response != "part one " {
			t.Fatalf("got %+v, %+v", got, got.answer.Error)
		}
	}
	var asked []bool
	for _, request := range upstream.requests {
		asked = append(asked, strings.Contains(request, "reasoning.encrypted_content"))
	}
	if !slices.Equal(asked, []bool{true, false, false}) {
		t.Errorf("the requests ask for encrypted reasoning: %v", asked)
	}
}
