package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// taskServer is continuo serve with the connector qwen, the CLI agent Qwen Code, a scripted model behind that agent,
// and an MCP client of the server.
type taskServer struct {
	*testing.T
	server server
	model  *taskModel
	home   string // of the agent
	client *mcp.ClientSession
}

// startTaskServer starts it all but the agent, or skips the test, loudly.
func startTaskServer(t *testing.T) *taskServer {
	t.Helper()
	script := npmFile(t, "@qwen-code", "qwen-code", "cli-entry.js")
	b := &taskServer{T: t, model: startTaskModel(t), home: t.TempDir()}
	settings, err := os.ReadFile(filepath.Join("testdata", "task", "qwen.json"))
	if err == nil {
		err = os.MkdirAll(filepath.Join(b.home, ".qwen"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(b.home, ".qwen", "settings.json"), settings, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The connector's timeout is there to end a test that hangs.
	b.server = serve(t, fmt.Sprintf(`
log:
  level: warn
connectors:
  qwen:
    command: [%q, %q, --auth-type, openai]
    dir: %q
    timeout: 15m
    env:
      HOME: %q
      OPENAI_BASE_URL: %s/v1
      OPENAI_MODEL: scripted
      NO_COLOR: "1"
`, newNode(t), script, t.TempDir(), b.home, b.model.url))
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	b.client, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.server.url + "/mcp", DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.client.Close() })
	return b
}

// toolAnswer is what the tools for tasks answer, as far as the tests look at it.
type toolAnswer struct {
	TaskID         string `json:"task_id"`
	AgentID        string `json:"agent_id"`
	ConversationID string `json:"conversation_id"`
	Status         string `json:"status"`
	Reason         string `json:"reason"`
	Output         string `json:"output"`
	Prompt         string `json:"prompt"`
	Agents         []struct {
		AgentID string `json:"agent_id"`
	} `json:"agents"`
}

// call calls a tool of the server.
func (b *taskServer) call(name string, arguments map[string]any) (got toolAnswer) {
	b.Helper()
	result, err := b.client.CallTool(b.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil || result.IsError {
		b.Fatalf("%s %v: %s, %v", name, arguments, data, err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		b.Fatalf("%s: %v: %s", name, err, data)
	}
	return got
}

// createTask gives work away with a conversation as its history.
func (b *taskServer) createTask(sample sampleConversation) (id string) {
	b.Helper()
	return b.call("create_real_task", map[string]any{
		"description": taskDescription, "conversation_history": sample.id,
		"success_criteria": []string{"It is known whether the washer is worn"},
	}).TaskID
}

// taskDescription is not said in the conversation, so that a model that is shown it was given the task.
const taskDescription = "Look at the washer of the left kitchen tap, and report."

// sampleConversation is a conversation of the log.
type sampleConversation struct {
	id      string
	Entries []struct {
		Role    string
		Content string
	}
}

// readConversation makes the conversation of testdata/task/talk.json, with calls of tools in it.
func (b *taskServer) readConversation() (made sampleConversation) {
	b.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "task", "talk.json"))
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(body, &made); err != nil {
		b.Fatal(err)
	}
	var begun struct {
		ID string `json:"id"`
	}
	b.post("/api/conversations", []byte(`{"key": "tap"}`), &begun)
	made.id = begun.ID
	b.post("/api/conversations/"+made.id+"/entries", body, &struct{}{})
	return made
}

// userMessages are the messages of the user.
func (k sampleConversation) userMessages() (words []string) {
	for _, entry := range k.Entries {
		if entry.Role == "user" {
			words = append(words, entry.Content)
		}
	}
	return words
}

// post posts JSON to the server and decodes the answer.
func (b *taskServer) post(path string, body []byte, into any) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.server.url+path, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode >= 300 {
		b.Fatalf("%s: status %d, %v", path, response.StatusCode, err)
	}
}
