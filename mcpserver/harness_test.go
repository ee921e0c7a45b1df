package mcpserver_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/mcpserver"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

var update = flag.Bool("update", false, "rewrite what tests expect in testdata")

// worker is a model that says what it is told to, piece by piece, until it is told to end.
type worker struct {
	pieces chan string
	mu     sync.Mutex
	ended  []error
}

func (w *worker) Info() model.Info {
	return model.Info{Provider: "test", Name: "worker", Protocol: model.ProtocolOpenAIChat}
}

func (w *worker) Stream(ctx context.Context, _ []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for {
			select {
			case <-ctx.Done():
				w.mu.Lock()
				w.ended = append(w.ended, context.Cause(ctx))
				w.mu.Unlock()
				yield(model.Delta{}, &model.Error{Reason: continuo.ReasonCancelled, Message: "stopped"})
				return
			case piece, ok := <-w.pieces:
				if !ok {
					yield(model.Delta{Finish: "stop"}, nil)
					return
				}
				if !yield(model.Delta{Text: piece}, nil) {
					return
				}
			}
		}
	}
}

// quick is a model that answers at once.
type quick struct{}

func (quick) Info() model.Info {
	return model.Info{Provider: "test", Name: "quick", Protocol: model.ProtocolOpenAIChat}
}

func (quick) Stream(context.Context, []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		_ = yield(model.Delta{Text: "It is done."}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}

// world is an engine with a quick model and one that waits to be told.
type world struct {
	*testing.T
	engine *engine.Engine
	log    *continuo.Log // of the engine
	worker *worker
	server *mcpserver.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOver(t, storetest.NewMemory())
}

func newWorldOver(t *testing.T, store maintenance.Store) *world {
	t.Helper()
	w := &world{T: t, worker: &worker{pieces: make(chan string)}}
	w.log = continuo.NewLog(store, continuo.LogOptions{Objects: storetest.NewObjects(), MaxInlineOutput: 1000})
	var err error
	w.engine, err = engine.New(w.log, engine.Options{
		Models: map[string]engine.Upstream{"quick": {Model: quick{}}, "worker": {Model: w.worker}}, Default: "quick", Index: store,
		Agents: map[string]engine.Agent{"reviewer": {ID: "reviewer", Persona: "You review."}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.server = mcpserver.New(w.engine, mcpserver.Options{Poll: 5 * time.Millisecond})
	t.Cleanup(func() {
		ending, cancel := context.WithCancel(context.Background())
		cancel() // what still works is ended
		_ = w.engine.Close(ending)
	})
	return w
}

// client is a client of a project, connected by pipes.
type client struct {
	*testing.T
	*mcp.ClientSession
	schemas      map[string]*jsonschema.Schema
	over         chan struct{} // closed when the server has ended
	acknowledged chan struct{} // one for each request that listens
}

func (w *world) client(project string, options *mcp.ClientOptions) *client {
	w.Helper()
	return w.clientOf(project, options, "")
}

// clientOf is a client that speaks a version of the protocol, "" for the newest.
func (w *world) clientOf(project string, options *mcp.ClientOptions, version string) *client {
	w.Helper()
	return w.clientIn(continuo.Scope{ProjectID: project}, options, version)
}

// clientIn is a client that reaches a scope.
func (w *world) clientIn(scope continuo.Scope, options *mcp.ClientOptions, version string) *client {
	w.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	c := &client{T: w.T, over: make(chan struct{})}
	go func() {
		defer close(c.over)
		_ = w.server.Run(context.WithoutCancel(w.Context()), scope, ours)
	}()
	c.connect(theirs, options, version)
	w.Cleanup(func() {
		_ = c.Close() // a test may have done it
		within(w.T, "the end of the server", c.over)
	})
	return c
}

func (c *client) connect(transport mcp.Transport, options *mcp.ClientOptions, version string) {
	c.Helper()
	var err error
	c.acknowledged = make(chan struct{}, 100)
	made := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	made.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				c.acknowledged <- struct{}{}
			}
			return next(ctx, method, request)
		}
	})
	c.ClientSession, err = made.Connect(c.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		c.Fatal(err)
	}
	c.schemas = map[string]*jsonschema.Schema{}
	for tool, err := range c.Tools(c.Context(), nil) {
		if err != nil {
			c.Fatal(err)
		}
		c.schemas[tool.Name] = compile(c.T, tool.Name, tool.OutputSchema)
	}
}

// compile makes a schema that knows no members but those it lists, so that results cannot have more.
func compile(t *testing.T, name string, schema any) *jsonschema.Schema {
	t.Helper()
	closeObjects(schema)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("mem:///"+name, schema); err != nil {
		t.Fatal(err)
	}
	made, err := compiler.Compile("mem:///" + name)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func closeObjects(value any) {
	switch value := value.(type) {
	case map[string]any:
		if value["properties"] != nil && value["additionalProperties"] == nil {
			value["additionalProperties"] = false
		}
		for _, member := range value {
			closeObjects(member)
		}
	case []any:
		for _, item := range value {
			closeObjects(item)
		}
	}
}

// try calls a tool, whose result must be as its schema says.
func (c *client) try(name string, arguments any) *mcp.CallToolResult {
	c.Helper()
	if text, ok := arguments.(string); ok {
		arguments = json.RawMessage(text)
	}
	result, err := c.CallTool(c.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		c.Fatalf("%s %s: %v", name, arguments, err)
	}
	c.check(name, result)
	return result
}

func (c *client) check(name string, result *mcp.CallToolResult) {
	c.Helper()
	if err := c.schemas[name].Validate(result.StructuredContent); err != nil {
		c.Errorf("%s: the result is not as its schema says: %v", name, err)
	}
	if members, _ := result.StructuredContent.(map[string]any); (members["error"] != nil) != result.IsError || len(result.Content) != 1 {
		c.Errorf("%s: isError is %v in %v", name, result.IsError, members)
	}
}

// call calls a tool, which must not fail, and decodes its result.
func (c *client) call(name, arguments string, into any) {
	c.Helper()
	result := c.try(name, arguments)
	if result.IsError {
		c.Fatalf("%s %s: %s", name, arguments, textOf(result))
	}
	if into != nil {
		decode(c.T, result.StructuredContent, into)
	}
}

// fails calls a tool, which must fail with an error of a type about a field.
func (c *client) fails(name, arguments, kind, field string) toolError {
	c.Helper()
	result := c.try(name, arguments)
	if !result.IsError {
		c.Fatalf("%s %s: %s", name, arguments, textOf(result))
	}
	var body struct{ Error toolError }
	decode(c.T, result.StructuredContent, &body)
	if body.Error.Type != kind || body.Error.Field != field {
		c.Errorf("%s %s: type %q, field %q (%s); want %q, %q", name, arguments, body.Error.Type, body.Error.Field, body.Error.Message, kind, field)
	}
	if !strings.HasPrefix(textOf(result), kind+": ") {
		c.Errorf("%s %s: a model is told %q", name, arguments, textOf(result))
	}
	return body.Error
}

type toolError struct {
	Type, Message, Field, Rule string
	Index                      *int
}

func textOf(result *mcp.CallToolResult) string {
	text, _ := result.Content[0].(*mcp.TextContent)
	return text.Text
}

func decode(t *testing.T, value, into any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read reads a resource.
func (c *client) read(uri string) (string, error) {
	c.Helper()
	result, err := c.ReadResource(c.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	return result.Contents[0].Text, nil
}

// newConversation makes a conversation of a project with messages of a user and an assistant in turn.
func (w *world) newConversation(project, key string, messages ...string) continuo.Conversation {
	w.Helper()
	conversation, err := w.log.Create(w.Context(), continuo.Conversation{ProjectID: project, Key: key, Title: "About " + messages[0]})
	if err != nil {
		w.Fatal(err)
	}
	for i, message := range messages {
		w.add(conversation, continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(message)})
	}
	return conversation
}

func (w *world) add(conversation continuo.Conversation, entries ...continuo.Entry) {
	w.Helper()
	if _, err := w.log.Append(w.Context(), conversation.ID, entries, continuo.AppendOptions{}); err != nil {
		w.Fatal(err)
	}
}

// calls adds a call of a tool and its result.
func (w *world) calls(conversation continuo.Conversation, id, output string) {
	w.Helper()
	w.add(
		conversation,
		continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: id, Type: "function", Name: "read", Arguments: "{}"}}},
		continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text(output)},
	)
}

// within fails a test that hangs, with a clear word: just before the time that all tests have, which is the only bound.
func within[T any](t *testing.T, what string, ready <-chan T) T {
	t.Helper()
	var late <-chan time.Time // never, where tests have all the time
	if deadline, ok := t.Deadline(); ok {
		late = time.After(time.Until(deadline) - time.Second)
	}
	select {
	case value := <-ready:
		return value
	case <-late:
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// given creates a task and returns its id.
func (c *client) given(description string) string {
	c.Helper()
	var task struct {
		ID string `json:"task_id"`
	}
	c.call("create_real_task", fmt.Sprintf(`{"description": %q}`, description), &task)
	return task.ID
}

// output is what tools tell of an agent.
type output struct {
	ID       string `json:"agent_id"`
	Status   string
	Reason   string
	Output   string
	From     int
	NextFrom int `json:"next_from"`
	Total    int
}

// deployed sets the worker to work on a new task.
func (c *client) deployed() output {
	c.Helper()
	var agent output
	c.call("deploy_headless_agent", fmt.Sprintf(`{"task_id": %q, "agent_type": "worker"}`, c.given("Work")), &agent)
	return agent
}
