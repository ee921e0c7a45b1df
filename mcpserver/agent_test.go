package mcpserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
)

func (w *world) openCall() continuo.Entry {
	return continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: "open", Type: "function", Name: "read", Arguments: "{}"}}}
}

func (c *client) outputOf(id string, from, wait int) (o output) {
	c.Helper()
	c.call("get_agent_output", fmt.Sprintf(`{"agent_id": %q, "from": %d, "wait_seconds": %d}`, id, from, wait), &o)
	return o
}

// One follows an agent from piece to piece to its end.
func TestAgentIsFollowed(t *testing.T) {
	w := newWorld(t)
	c := w.client("default", nil)
	agent := c.deployed()
	if agent.Status != "running" && agent.Status != "queued" {
		t.Errorf("it is %s", agent.Status)
	}
	go func() {
		for _, piece := range []string{"First. ", "Second. ", "Third."} {
			w.worker.pieces <- piece
		}
	}()
	output := ""
	for from := 0; len(output) < len("First. Second. Third."); {
		more := c.outputOf(agent.ID, from, 300)
		if more.From != from || more.NextFrom != from+len(more.Output) || more.Output == "" {
			t.Fatalf("from %d: %+v", from, more)
		}
		output, from = output+more.Output, more.NextFrom
	}
	close(w.worker.pieces)
	end := c.outputOf(agent.ID, len(output), 300)
	if output != "First. Second. Third." || end.Status != "completed" || end.Output != "" {
		t.Errorf("it said %q and is %+v", output, end)
	}
	if last := c.outputOf(agent.ID, -6, 300); last.Output != "Third." {
		t.Errorf("at the end it said %+v", last)
	}
}

func TestDeployWaits(t *testing.T) {
	c := newWorld(t).client("default", nil)
	var agent output
	c.call("deploy_headless_agent", fmt.Sprintf(`{"task_id": %q, "prompt": "Be quick.", "wait_seconds": 300}`, c.given("Work")), &agent)
	if agent.Status != "completed" || agent.Output != "It is done." {
		t.Errorf("it is %+v", agent)
	}
	c.fails("kill_real_agent", fmt.Sprintf(`{"agent_id": %q}`, agent.ID), "not_running", "")
}

func TestAgentIsKilled(t *testing.T) {
	w := newWorld(t)
	c := w.client("default", nil)
	agent := c.deployed()
	w.worker.pieces <- "I begin"
	c.outputOf(agent.ID, 0, 300)
	var killed output
	c.call("kill_real_agent", fmt.Sprintf(`{"agent_id": %q, "reason": "enough"}`, agent.ID), &killed)
	if end := c.outputOf(agent.ID, 0, 300); killed.Reason != "enough" || end.Reason != "enough" || killed.Status != "killed" || end.Status != "killed" || end.Output != "I begin" {
		t.Errorf("killed it was %+v, then %+v", killed, end)
	}
}

// A client that asks for it is told how long a call has waited, more each time.
func TestProgress(t *testing.T) {
	w := newWorld(t)
	notified := make(chan *mcp.ProgressNotificationParams, 100)
	c := w.client("default", &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
		notified <- request.Params
	}})
	agent := c.deployed()
	params := &mcp.CallToolParams{Name: "get_agent_output", Arguments: map[string]any{"agent_id": agent.ID, "wait_seconds": 300, "from": 1000}}
	params.SetProgressToken("p1")
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), params)
		ended <- err
	}()
	last := -1.0
	for i := range 4 {
		progress := within(t, "progress", notified)
		if progress.ProgressToken != "p1" || progress.Total != 300 || progress.Progress <= last || !strings.Contains(progress.Message, agent.ID) {
			t.Errorf("told %+v after %v", progress, last)
		}
		last = progress.Progress
		if i < 3 {
			w.worker.pieces <- fmt.Sprint("piece ", i)
		}
	}
	close(w.worker.pieces)
	if err := within(t, "the end of the call", ended); err != nil {
		t.Error(err)
	}
}

// A client that asks for it is told of each summary that a task's history is made of.
func TestProgressOfSummaries(t *testing.T) {
	notified := make(chan *mcp.ProgressNotificationParams, 100)
	c := newWorld(t).client("default", &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
		notified <- request.Params
	}})
	var history []map[string]string
	for range 6 {
		history = append(history, map[string]string{"role": "assistant", "content": strings.Repeat("On and on. ", 300)})
	}
	params := &mcp.CallToolParams{Name: "create_real_task", Arguments: map[string]any{"description": "Go on", "compression": "semantic", "conversation_history": history}}
	params.SetProgressToken("p1")
	result, err := c.CallTool(t.Context(), params)
	if err != nil || result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, `"summarized_count":6`) {
		t.Fatalf("it is %+v, %v", result, err)
	}
	for i := range 6 {
		if progress := within(t, "progress", notified); progress.ProgressToken != "p1" || progress.Total != 6 || progress.Progress != float64(i+1) || !strings.Contains(progress.Message, "summaries") {
			t.Errorf("told %+v", progress)
		}
	}
}

// A call that waits ends when its client no longer wants it, the agent goes on then, and when the program ends.
func TestWaitsEnd(t *testing.T) {
	for name, end := range map[string]func(w *world, cancel func()){
		"cancelled": func(_ *world, cancel func()) { cancel() },
		"drained":   func(w *world, _ func()) { w.engine.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			waits := make(chan struct{}, 100)
			c := w.client("default", &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { waits <- struct{}{} }})
			agent := c.deployed()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				params := &mcp.CallToolParams{Name: "get_agent_output", Arguments: map[string]any{"agent_id": agent.ID, "wait_seconds": 300}}
				params.SetProgressToken(1)
				_, err := c.CallTool(ctx, params)
				ended <- err
			}()
			within(t, "the wait", waits)
			end(w, cancel)
			if err := within(t, "the end of the call", ended); (name == "cancelled") != errors.Is(err, context.Canceled) {
				t.Errorf("the call ended with %v", err)
			}
			_ = c.Close() // waits for handlers: one that still waited would hang here
			within(t, "the end of the server", c.over)
			if still, err := w.engine.Tasks.Agent(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID); err != nil || name != "drained" && still.State != "running" {
				t.Errorf("the agent is %+v, %v", still, err)
			}
		})
	}
}

// A client that hangs up ends the server, also while a call waits.
func TestHangUp(t *testing.T) {
	w := newWorld(t)
	agent := w.client("default", nil).deployed()
	requests, input := io.Pipe()
	hear, answers := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- w.server.Run(context.WithoutCancel(t.Context()), continuo.Scope{ProjectID: "default"}, &mcp.IOTransport{Reader: requests, Writer: answers})
	}()
	lines := bufio.NewScanner(hear)
	for i, request := range []string{
		`{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}`,
		`{"jsonrpc": "2.0", "method": "notifications/initialized"}`,
		fmt.Sprintf(`{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_agent_output", "arguments": {"agent_id": %q, "wait_seconds": 300}, "_meta": {"progressToken": 1}}}`, agent.ID),
	} {
		if _, err := io.WriteString(input, request+"\n"); err != nil {
			t.Fatal(err)
		}
		if i != 1 && !lines.Scan() { // the answer, or the first progress
			t.Fatal(lines.Err())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, hear) }()
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := within(t, "the end of the server", over); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
