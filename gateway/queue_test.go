package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Requests that come at once for one conversation are answered one after another, however many there are.
func TestRequestsForOneConversationWaitForEachOther(t *testing.T) {
	const requests = 24
	answers := make([]http.HandlerFunc, requests)
	for i := range answers {
		answers[i] = stream(chatStream)
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"gpt","messages":[{"role":"user","content":"n%d"}]}`,
		"/v1/responses":        `{"model":"gpt","input":"n%d","conversation":%q}`,
	} {
		t.Run(path, func(t *testing.T) {
			g := newGateway(t, newUpstream(t, answers...))
			_, made := g.post(t, "/v1/conversations", `{}`)
			id := decode[struct{ ID string }](t, made).ID
			var all sync.WaitGroup
			statuses := make([]string, requests)
			for i := range requests {
				all.Go(func() {
					sent := strings.ReplaceAll(fmt.Sprintf(strings.ReplaceAll(body, "%q", `"CONVERSATION"`), i), "CONVERSATION", id)
					header := []string{"X-Conversation-ID", id}
					if path == "/v1/responses" {
						header = nil
					}
					response, got := g.post(t, path, sent, header...)
					if response.StatusCode != http.StatusOK {
						statuses[i] = fmt.Sprint(response.StatusCode, got)
					}
				})
			}
			all.Wait()
			for _, status := range statuses {
				if status != "" {
					t.Errorf("got %s", status)
				}
			}
			conversation, err := g.log.Conversation(t.Context(), id)
			if err != nil || conversation.LastSeq != 2*requests {
				t.Fatalf("the log has %d entries, %v", conversation.LastSeq, err)
			}
			response := &http.Response{Header: http.Header{"X-Conversation-Id": {id}}}
			entries := g.entries(t, response)
			var said []string
			for i, entry := range entries {
				if want := []string{"user", "assistant"}[i%2]; string(entry.Role) != want {
					t.Fatalf("entry %d is of the role %s", i, entry.Role)
				}
				if i%2 == 0 {
					said = append(said, entry.Content.String())
				}
			}
			slices.Sort(said)
			if len(slices.Compact(said)) != requests {
				t.Errorf("the messages are %q", said)
			}
		})
	}
}
