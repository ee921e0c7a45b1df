package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// shownCompletion is a stored chat completion as far as the tests read it.
type shownCompletion struct {
	ID, Object, Model string
	Created           int64
	Metadata          map[string]string
	Choices           []struct {
		Message struct {
			Role, Content string
			ToolCalls     []struct{ ID string } `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage struct {
		PromptTokens int `json:"prompt_tokens"`
	}
}

// completionList is a list of them, or of messages.
type completionList struct {
	Object  string
	Data    []shownCompletion
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

func (l completionList) ids() (ids []string) {
	for _, completion := range l.Data {
		ids = append(ids, completion.ID)
	}
	return ids
}

// chatAnswer is an answer of an upstream with an id.
func chatAnswer(id string) http.HandlerFunc {
	return answered(200, "application/json", fmt.Sprintf(`{"id":%q,"object":"chat.completion","created":1700000000,"model":"gpt-4o-2024","choices":[{"index":0,"message":{"role":"assistant","content":"to %s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, id, id))
}

// A completion is stored where its request says so: with the id that the client got, and what it was asked.
func TestStoredCompletionsAreRetrieved(t *testing.T) {
	streamed := strings.ReplaceAll(chatStream, `"choices":[{"index":0,"delta":{}`, `"model":"gpt-4o-2024","choices":[{"index":0,"delta":{}`)
	for name, test := range map[string]struct {
		model, stream string
		answer        http.HandlerFunc
		id, content   string
	}{
		"whole":    {"gpt", "false", chatAnswer("chatcmpl-1"), "chatcmpl-1", "to chatcmpl-1"},
		"streamed": {"gpt", "true", stream(streamed), "c1", "Grüß Gott"},
		"built":    {"claude", "false", stream(messagesStream), "", "Grüß Gott"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, newUpstream(t, test.answer, test.answer))
			_, got := g.post(t, "/v1/chat/completions", `{"model":"`+test.model+`","stream":`+test.stream+`,"store":true,"metadata":{"a":"b"},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"hi"}]}]}`)
			id := test.id
			if id == "" {
				id = decode[shownCompletion](t, got).ID
			}
			shown := decode[shownCompletion](t, g.get(t, "/v1/chat/completions/"+id).body)
			if shown.ID != id || shown.Object != "chat.completion" || shown.Created == 0 || shown.Metadata["a"] != "b" || len(shown.Choices) != 1 || shown.Choices[0].Message.Content != test.content ||
				shown.Choices[0].Message.Role != "assistant" || shown.Choices[0].FinishReason != "stop" || shown.Model == "" {
				t.Errorf("the completion is %+v", shown)
			}
			messages := g.get(t, "/v1/chat/completions/"+id+"/messages")
			for _, want := range []string{`"id":"` + id + `-0"`, `"content":"Be brief."`, `"id":"` + id + `-1"`, `"hi"`, `"object":"list"`, `"has_more":false`} {
				if !strings.Contains(messages.body, want) {
					t.Errorf("the messages are %s, without %s", messages.body, want)
				}
			}
			if list := decode[completionList](t, g.get(t, "/v1/chat/completions").body); list.Object != "list" || !slices.Equal(list.ids(), []string{id}) || list.HasMore || *list.FirstID != id || *list.LastID != id {
				t.Errorf("the list is %+v", list)
			}
			if _, got := g.post(t, "/v1/chat/completions", `{"model":"`+test.model+`","messages":[{"role":"user","content":"not stored"}]}`); got == "" {
				t.Error("no answer")
			}
			if list := decode[completionList](t, g.get(t, "/v1/chat/completions").body); len(list.Data) != 1 {
				t.Errorf("a completion without store is listed: %+v", list)
			}
		})
	}
}

// Lists have OpenAI's pages and filters; changed metadata and deletions hold, and a deleted conversation takes its
// completions with it.
func TestStoredCompletionsAreListed(t *testing.T) {
	var answers []http.HandlerFunc
	ids := []string{"chatcmpl-a", "chatcmpl-b", "chatcmpl-c", "chatcmpl-d", "chatcmpl-e"}
	for _, id := range ids {
		answers = append(answers, chatAnswer(id))
	}
	g := newGateway(t, newUpstream(t, answers...))
	conversations := map[string]string{}
	for i, id := range ids {
		response, _ := g.post(t, "/v1/chat/completions", fmt.Sprintf(`{"model":"gpt","store":true,"metadata":{"n":"%d","even":"%t"},"messages":[{"role":"user","content":"%s"}]}`, i, i%2 == 0, id))
		conversations[id] = response.Header.Get("X-Conversation-ID")
	}
	check := func(query string, more bool, want ...string) {
		t.Helper()
		got := g.get(t, "/v1/chat/completions"+query)
		if list := decode[completionList](t, got.body); got.status != http.StatusOK || !slices.Equal(list.ids(), want) || list.HasMore != more {
			t.Errorf("%s: got %d %v, more %v; want %v, more %v", query, got.status, list.ids(), list.HasMore, want, more)
		}
	}
	check("", false, ids...)
	check("?limit=2", true, ids[0], ids[1])
	check("?limit=2&after="+ids[1], true, ids[2], ids[3])
	check("?limit=2&after="+ids[3], false, ids[4])
	check("?after="+ids[4], false)
	check("?order=desc&limit=2", true, ids[4], ids[3])
	check("?order=desc&after="+ids[1], false, ids[0])
	check("?order=desc&after="+ids[0], false)
	check("?metadata[even]=true&limit=2", true, ids[0], ids[2])
	check("?metadata[even]=true&limit=3", false, ids[0], ids[2], ids[4])
	check("?metadata[even]=true&metadata[n]=2", false, ids[2])
	check("?model=gpt", false, ids...)
	check("?model=gpt-4o-2024", false, ids...)
	check("?model=other", false)

	changed := decode[shownCompletion](t, g.call(t, "POST", "/v1/chat/completions/"+ids[1], `{"metadata":{"even":"true"}}`).body)
	if changed.ID != ids[1] || changed.Metadata["even"] != "true" || len(changed.Metadata) != 1 {
		t.Errorf("changed to %+v", changed)
	}
	if got := g.call(t, "DELETE", "/v1/chat/completions/"+ids[2], ""); got.status != http.StatusOK || !strings.Contains(got.body, `"chat.completion.deleted"`) || !strings.Contains(got.body, `"deleted":true`) {
		t.Errorf("deleted: %+v", got)
	}
	check("?metadata[even]=true", false, ids[0], ids[1], ids[4])
	check("?after="+ids[1], false, ids[3], ids[4])
	if got := g.call(t, "DELETE", "/v1/conversations/"+conversations[ids[3]], ""); got.status != http.StatusOK {
		t.Errorf("deleted: %+v", got)
	}
	check("?limit=2&after="+ids[1], false, ids[4])
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/" + ids[2], "", 404},
		{"GET", "/" + ids[2] + "/messages", "", 404},
		{"POST", "/" + ids[2], `{"metadata":{}}`, 404},
		{"DELETE", "/" + ids[2], "", 404},
		{"GET", "/" + ids[3], "", 404},
		{"GET", "/chatcmpl-nope", "", 404},
		{"POST", "/" + ids[0], `{}`, 400},
		{"POST", "/" + ids[0], `{"metadata":{"a":1}}`, 400},
		{"GET", "?limit=0", "", 400},
		{"GET", "?order=up", "", 400},
		{"GET", "?after=chatcmpl-nope", "", 400},
	} {
		got := g.call(t, test.method, "/v1/chat/completions"+test.path, test.body)
		if got.status != test.status || !strings.Contains(got.body, `"invalid_request_error"`) || !json.Valid([]byte(got.body)) {
			t.Errorf("%s %s %s: got %+v", test.method, test.path, test.body, got)
		}
	}
	if got := g.call(t, "POST", "/v1/chat/completions", `{"model":"gpt","store":true,"metadata":{"a":1},"messages":[{"role":"user","content":"x"}]}`); got.status != http.StatusBadRequest {
		t.Errorf("metadata that is no text: got %+v", got)
	}
}

// An upstream whose ids repeat has the newest completion of an id only.
func TestRepeatedIDsOfCompletions(t *testing.T) {
	g := newGateway(t, newUpstream(t, chatAnswer("x"), chatAnswer("y"), chatAnswer("x")))
	for i := range 3 {
		g.post(t, "/v1/chat/completions", fmt.Sprintf(`{"model":"gpt","store":true,"metadata":{"n":"%d"},"messages":[{"role":"user","content":"%d"}]}`, i, i))
	}
	list := decode[completionList](t, g.get(t, "/v1/chat/completions").body)
	if !slices.Equal(list.ids(), []string{"y", "x"}) || list.Data[1].Metadata["n"] != "2" {
		t.Errorf("the list is %+v", list)
	}
}
