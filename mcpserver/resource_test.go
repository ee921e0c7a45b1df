package mcpserver_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestResources(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "Hello", "Hi")
	long := strings.Repeat("a line of the output\n", 500)
	w.calls(conversation, "call/1 ü", long)
	c := w.client("default", nil)
	uri := "continuo://conversations/" + conversation.ID
	for at, want := range map[string]string{
		uri: `"content":"Hello"`, "continuo://conversations/s1": `"earlier_entries":0`, uri + "/transcript": "$user: Hello\n\n$respond: Hi",
	} {
		if text, err := c.read(at); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q, %v", at, text, err)
		}
	}
	entry := w.newest(conversation)
	name := strings.TrimSuffix(entry.OutputRef[strings.LastIndex(entry.OutputRef, "/")+1:], ".json")
	if text, err := c.read(uri + "/tool-results/" + name); err != nil || text != long {
		t.Errorf("the output %s is %.100q, %v", name, text, err)
	}
	for _, wrong := range []string{
		"continuo://conversations/", "continuo://conversations/nowhere", "continuo://conversations/" + conversation.ID + "/entries", "continuo://conversations/..%2f..%2fetc",
		"continuo://conversations/%zz", "continuo://conversations/%ff", uri + "/tool-results/none", uri + "/tool-results/..%2Fx", "continuo://tasks/task_1/prompt",
		"continuo://tasks/" + conversation.ID + "/prompt", "file:///etc/passwd", "continuo://conversations/" + strings.Repeat("a", 5000),
	} {
		if text, err := c.read(wrong); err == nil || !strings.Contains(err.Error(), "Resource not found") {
			t.Errorf("%.100s: %q, %v", wrong, text, err)
		}
	}
}

func (w *world) newest(conversation continuo.Conversation) (entry continuo.Entry) {
	w.Helper()
	conversation, err := w.log.Conversation(w.Context(), conversation.ID)
	if err != nil {
		w.Fatal(err)
	}
	for entry, err := range w.log.Read(w.Context(), conversation, continuo.Range{Backward: true}) {
		if err != nil {
			w.Fatal(err)
		}
		return entry
	}
	w.Fatal("there are no entries")
	return entry
}

// A large conversation is shown by its newest entries, and says how many came before.
func TestLongConversation(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "Hello")
	for i := range 149 {
		w.add(conversation, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(fmt.Sprint("answer ", i))})
	}
	var shown struct {
		Entries []struct{ Seq int64 }
		Earlier int64 `json:"earlier_entries"`
	}
	text, err := w.client("default", nil).read("continuo://conversations/" + conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, jsonText(text), &shown)
	if len(shown.Entries) != 100 || shown.Earlier != 50 || shown.Entries[0].Seq != 51 || shown.Entries[99].Seq != 150 {
		t.Errorf("shown are %d entries after %d", len(shown.Entries), shown.Earlier)
	}
}

// The list has every conversation and task of the project once, over all of its pages.
func TestListOfResources(t *testing.T) {
	w := newWorld(t)
	c := w.client("default", nil)
	want := map[string]bool{}
	for i := range 120 {
		uri := "continuo://conversations/" + w.newConversation("default", "", fmt.Sprint("talk ", i)).ID
		want[uri], want[uri+"/transcript"] = true, true
	}
	for i := range 60 {
		want["continuo://tasks/"+c.given(fmt.Sprint("task ", i))+"/prompt"] = true
	}
	w.newConversation("other", "", "not mine")
	for resource, err := range c.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if !want[resource.URI] {
			t.Errorf("%s is there twice, or should not be there at all", resource.URI)
		}
		delete(want, resource.URI)
	}
	if len(want) > 0 {
		t.Errorf("%d are missing: %v", len(want), want)
	}
	for _, cursor := range []string{"x", "e30", "bm90IGpzb24", "eyJraW5kIjoiYWdlbnQifQ"} {
		if result, err := c.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor}); err == nil && cursor != "e30" {
			t.Errorf("the cursor %q gave %v", cursor, result.Resources)
		}
	}
}

// What is read from the log is nothing that a cache may show to others.
func TestWhatIsReadIsPrivate(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "Hello")
	c := w.client("default", nil)
	read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "continuo://conversations/" + conversation.ID})
	if err != nil || read.CacheScope != "private" || read.TTLMs != 0 {
		t.Errorf("a resource is %+v, %v", read, err)
	}
	if list, err := c.ListResources(t.Context(), nil); err != nil || list.CacheScope != "private" || list.TTLMs != 0 {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// A subscriber is notified of every later change, over pipes in old and new versions of the protocol, and over HTTP
// in the new one.
func TestSubscriptions(t *testing.T) {
	for name, version := range map[string]string{"pipes": "2025-11-25", "pipes, new": "2026-07-28", "http": "2026-07-28"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			conversation, other := w.newConversation("default", "s1", "Hello"), w.newConversation("default", "s2", "Hello")
			updates := make(chan string, 100)
			options := &mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, request *mcp.ResourceUpdatedNotificationRequest) {
				updates <- request.Params.URI
			}}
			var c *client
			if name == "http" {
				c = w.overHTTP("default", options, version)
			} else {
				c = w.clientOf("default", options, version)
			}
			uri := "continuo://conversations/" + conversation.ID + "/transcript"
			if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			if version == "2026-07-28" {
				within(t, "the acknowledgement", c.acknowledged)
			}
			for _, text := range []string{"one", "two"} {
				w.add(other, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text)})
				w.add(conversation, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text)})
				if updated := within(t, "the update", updates); updated != uri {
					t.Errorf("heard of %s", updated)
				}
			}
			if err := c.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uri}); err != nil {
				t.Error(err)
			}
			if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "continuo://conversations/nowhere"}); err == nil && version == "2025-11-25" {
				t.Error("a resource that is not there can be subscribed to")
			}
		})
	}
}

// overHTTP is a client over HTTP.
func (w *world) overHTTP(project string, options *mcp.ClientOptions, version string) *client {
	w.Helper()
	served := httptest.NewServer(w.server.Handler(continuo.Scope{ProjectID: project}))
	w.Cleanup(served.Close)
	c := &client{T: w.T}
	c.connect(&mcp.StreamableClientTransport{Endpoint: served.URL, DisableStandaloneSSE: true}, options, version)
	w.Cleanup(func() { _ = c.Close() }) // a test may have done it
	return c
}

// Without a session nobody could be told: subscriptions of the older protocol are neither offered nor taken.
func TestNoSubscriptionsWithoutSession(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "Hello")
	c := w.overHTTP("default", nil, "2025-11-25")
	if c.InitializeResult().Capabilities.Resources.Subscribe {
		t.Error("subscriptions are offered")
	}
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "continuo://conversations/" + conversation.ID}); err == nil {
		t.Error("a subscription was taken")
	}
}

// Streams over HTTP end when the program wants to end.
func TestStreamsEndWithTheProgram(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "Hello")
	served := httptest.NewServer(w.server.Handler(continuo.Scope{ProjectID: "default"}))
	c := &client{T: t}
	c.connect(&mcp.StreamableClientTransport{Endpoint: served.URL, DisableStandaloneSSE: true}, nil, "")
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "continuo://conversations/" + conversation.ID}); err != nil {
		t.Fatal(err)
	}
	w.engine.Drain()
	closed := make(chan struct{})
	go func() {
		served.Close() // waits for requests in progress
		close(closed)
	}()
	within(t, "the end of the stream", closed)
	_ = c.Close()
}

// Any replica answers any request: what one has created, the other one shows, in the middle of a client's work.
func TestReplicas(t *testing.T) {
	store := storetest.NewMemory()
	one, two := newWorldOver(t, store), newWorldOver(t, store)
	first, second := one.overHTTP("default", nil, ""), two.overHTTP("default", nil, "")
	id := first.given("Work")
	var agent output
	second.call("deploy_headless_agent", fmt.Sprintf(`{"task_id": %q, "wait_seconds": 300}`, id), &agent)
	if seen := first.outputOf(agent.ID, 0, 300); seen.Output != "It is done." || seen.Status != "completed" {
		t.Errorf("the other replica shows %+v", seen)
	}
}

func TestCompletions(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for i := range 3 {
		ids = append(ids, w.newConversation("default", fmt.Sprint("key", i), fmt.Sprint("topic ", i)).ID)
	}
	conversation := w.newConversation("default", "with-calls", "Hello")
	w.calls(conversation, "call_a", "x")
	w.calls(conversation, "call_b", "y")
	w.newConversation("other", "", "topic 0")
	c := w.client("default", nil)
	task := c.given("topic 0")
	for _, row := range []struct {
		ref, argument, value, id string
		want                     []string
	}{
		{"continuo://conversations/{id}", "id", ids[0], "", ids[:1]},
		{"continuo://conversations/{id}/transcript", "id", "TOPIC 1", "", ids[1:2]},
		{"continuo://conversations/{id}", "id", "key2", "", ids[2:]},
		{"continuo://tasks/{id}/prompt", "id", "task_", "", []string{task}},
		{"continuo://conversations/{id}/tool-results/{call}", "call", "call_", conversation.ID, []string{"call_b", "call_a"}},
		{"continuo://conversations/{id}/tool-results/{call}", "call", "", "nowhere", nil},
		{"resume", "conversation", "topic 2", "", ids[2:]},
		{"resume", "nothing", "", "", nil},
	} {
		params := &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: row.ref}, Argument: mcp.CompleteParamsArgument{Name: row.argument, Value: row.value}}
		if row.ref == "resume" {
			params.Ref = &mcp.CompleteReference{Type: "ref/prompt", Name: row.ref}
		}
		if row.id != "" {
			params.Context = &mcp.CompleteContext{Arguments: map[string]string{"id": row.id}}
		}
		result, err := c.Complete(t.Context(), params)
		if err != nil || !slices.Equal(result.Completion.Values, row.want) {
			t.Errorf("%+v: %+v, %v", row, result, err)
		}
	}
}

func TestPrompts(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "The tap drips {{WORK}}", "Which one?")
	c := w.client("default", nil)
	for name, wants := range map[string][]string{
		"hand_off": {conversation.ID, "2 entries", "create_real_task", "Mend {{CONVERSATION}}"},
		"resume":   {conversation.ID, "$user: The tap drips {{WORK}}", "$respond: Which one?"},
	} {
		arguments := map[string]string{"conversation": "s1"}
		if name == "hand_off" {
			arguments["work"] = "Mend {{CONVERSATION}}"
		}
		got, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		text := got.Messages[0].Content.(*mcp.TextContent).Text
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q: %s", name, want, text)
			}
		}
		for _, bad := range []map[string]string{nil, {"conversation": " "}, {"conversation": "nowhere"}} {
			if got, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: bad}); err == nil {
				t.Errorf("%s %v: %+v", name, bad, got)
			}
		}
	}
}
