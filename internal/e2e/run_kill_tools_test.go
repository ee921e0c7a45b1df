package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolServer is an MCP server that outlives the programs which call it. Its tool peek is safe to repeat; enter is not.
type toolServer struct {
	url        string
	killPoints *killPoints

	mu   sync.Mutex
	done []toolServerCall
}

// toolServerCall is a call that came to the tool server. The note is of one call of a model, and identifies the call.
type toolServerCall struct {
	tool, note string
	at         time.Time
}

// toolCallTime is how long a call takes.
const toolCallTime = 200 * time.Millisecond

// programHeader names the program that calls.
const programHeader = "X-Program"

func startToolServer(t *testing.T, killPoints *killPoints) *toolServer {
	t.Helper()
	d := &toolServer{killPoints: killPoints}
	server := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	d.add(server, "peek", "Looks what a note says.", &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true})
	d.add(server, "enter", "Enters a note.", nil)
	host := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(host.Close)
	d.url = host.URL
	return d
}

func (d *toolServer) add(server *mcp.Server, name, about string, hints *mcp.ToolAnnotations) {
	schema := json.RawMessage(`{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`)
	server.AddTool(&mcp.Tool{Name: name, Description: about, Annotations: hints, InputSchema: schema},
		func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct{ Note string }
			if err := json.Unmarshal(request.Params.Arguments, &in); err != nil {
				return nil, err
			}
			d.mu.Lock()
			d.done = append(d.done, toolServerCall{name, in.Note, time.Now()})
			d.mu.Unlock()
			d.killPoints.reach(inTool, request.Extra.Header.Get(programHeader))
			select {
			case <-time.After(toolCallTime):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: doneWord + in.Note}}}, nil
		})
}

// doneWord begins what the tool server answers.
const doneWord = "done: "

// calls returns the calls that came until now.
func (d *toolServer) calls() []toolServerCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.done)
}
