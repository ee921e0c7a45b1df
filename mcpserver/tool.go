package mcpserver

import (
	"context"
	"embed"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Tool is one tool: what clients are offered, the types of its arguments and its result, and its function. Its description
// is NAME.md. Its schemas are generated from the types and their doc comments.
type Tool struct {
	Name, Title string
	// Arguments reads the input type.
	Arguments *api.Arguments
	// Output is the type of the result's structured content. One that implements api.TextWriter has another text than its JSON.
	Output reflect.Type
	// AnyName ignores unknown arguments with a warning, instead of refusing them.
	AnyName bool

	effect effect
	run    func(f *projectServer, c *call, in any) (any, error)
}

// define makes a tool of a function with an input and an output type.
func define[In, Out any](name, title string, effect effect, run func(*projectServer, *call, In) (Out, error)) Tool {
	arguments := api.ArgumentsOf(reflect.TypeFor[In]())
	return Tool{
		Name: name, Title: title, effect: effect, Arguments: arguments, Output: reflect.TypeFor[Out](),
		run: func(f *projectServer, c *call, in any) (any, error) {
			if err := arguments.Check(in); err != nil {
				return nil, err
			}
			return run(f, c, *in.(*In))
		},
	}
}

// ignoringUnknown is the tool with any further arguments.
func (t Tool) ignoringUnknown() Tool {
	t.AnyName = true
	return t
}

// Tools lists the tools in the order of their typical use.
func Tools() []Tool {
	return []Tool{
		define("create_real_task", "Create a task with its history", adds, (*projectServer).createTask).ignoringUnknown(),
		define("get_real_task_status", "Show the status of a task", reads, (*projectServer).taskStatus),
		define("list_real_tasks", "List tasks", reads, (*projectServer).listTasks),
		define("get_task_prompt", "Show the prompt of a task", reads, (*projectServer).taskPrompt),
		define("deploy_headless_agent", "Set an agent to work on a task", commits, (*projectServer).deployAgent),
		define("get_agent_output", "Read the output of an agent", reads, (*projectServer).agentOutput),
		define("report_agent_finding", "Report a finding", adds, (*projectServer).reportFinding),
		define("kill_real_agent", "End an agent's work", ends, (*projectServer).killAgent),
		define("search_conversations", "Search the conversations", reads, (*projectServer).searchConversations),
		define("remember", "Remember a fact", adds, (*projectServer).remember),
		define("recall", "Find what is known", reads, (*projectServer).recall),
		define("forget", "Forget a fact", ends, (*projectServer).forget),
		define("get_context", "Show what a model would be sent", reads, (*projectServer).getContext),
		define("append_message", "Append a message", adds, (*projectServer).appendMessage),
	}
}

// failed is the structured content of a call that failed.
type failed struct {
	// Why the call failed; no other member is present then.
	Error *problem `json:"error"`
}

// FailureType is the type of the structured content of a call that failed.
func FailureType() reflect.Type { return reflect.TypeFor[failed]() }

// effect classifies the side effects of a call.
type effect int

const (
	reads   effect = iota // changes nothing
	adds                  // adds something; twice, when it is called twice
	ends                  // ends something; idempotent
	commits               // starts work that reaches beyond this server
)

// annotations describe an effect to clients.
func (e effect) annotations(title string) *mcp.ToolAnnotations {
	destructive, open := e == ends || e == commits, e == commits
	return &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: e == reads, DestructiveHint: &destructive, IdempotentHint: e == reads || e == ends, OpenWorldHint: &open,
	}
}

//go:embed *.md
var texts embed.FS

// schemas has the schemas of the tools and of errors, which internal/apigen generates.
//
//go:embed schemas.json
var schemas []byte

// text reads an embedded file; a test checks that it exists.
func text(name string) string {
	data, err := texts.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(data))
}

// offered is a tool as clients are offered it.
type offered struct {
	Tool
	shown mcp.Tool
}

// offeredTools lists the tools with their schemas. It fails for a tool that was not generated.
func offeredTools() (all []offered, err error) {
	var generated struct {
		Failure struct{ Properties json.RawMessage }
		Tools   map[string]struct{ Input, Output json.RawMessage }
	}
	if err := json.Unmarshal(schemas, &generated); err != nil {
		return nil, err
	}
	for _, tool := range Tools() {
		schema := generated.Tools[tool.Name]
		output, err := orError(schema.Output, generated.Failure.Properties)
		if err != nil {
			return nil, err
		}
		all = append(all, offered{tool, mcp.Tool{
			Name: tool.Name, Title: tool.Title, Description: text(tool.Name + ".md"), Annotations: tool.effect.annotations(tool.Title),
			InputSchema: schema.Input, OutputSchema: output,
		}})
	}
	return all, nil
}

// orError makes a schema of results that may be errors instead, with the properties of a failure: clients check errors
// against it too.
func orError(schema, failure json.RawMessage) (json.RawMessage, error) {
	object, err := rawjson.ParseObject(schema)
	if err != nil {
		return nil, err
	}
	properties, err := rawjson.ParseObject(object.Get("properties"))
	if err != nil {
		return nil, err
	}
	also, err := rawjson.ParseObject(failure)
	if err != nil {
		return nil, err
	}
	properties = append(properties, also...)
	object.Set("properties", rawjson.MustMarshal(properties))
	object.Set("anyOf", rawjson.MustMarshal([]map[string]json.RawMessage{{"required": object.Get("required")}, {"required": json.RawMessage(`["error"]`)}}))
	return object.Without("required").Raw(), nil
}

func (f *projectServer) addTools(tools []offered) {
	for _, tool := range tools {
		f.mcp.AddTool(&tool.shown, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return f.call(&call{ctx: ctx, request: request}, tool.Tool), nil
		})
	}
}

// call is one call of a tool.
type call struct {
	ctx     context.Context //nolint:containedctx // lives as long as the call
	request *mcp.CallToolRequest
	unknown []string // names of arguments that were ignored
}

// call runs a tool. Every error is reported in the result, for the calling model to see.
func (f *projectServer) call(c *call, tool Tool) *mcp.CallToolResult {
	in, unknown, err := tool.Arguments.Decode(c.request.Params.Arguments, tool.AnyName)
	if err != nil {
		return f.failure(c.ctx, problemOf(err))
	}
	c.unknown = unknown
	out, err := tool.run(f, c, in)
	if err != nil {
		p := problemOf(err)
		p.Field = tool.Arguments.NameOf(p.Field)
		return f.failure(c.ctx, p)
	}
	structured := json.RawMessage(rawjson.MustMarshal(out))
	content := string(structured)
	if t, ok := out.(api.TextWriter); ok {
		content = string(t.WriteText())
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: content}}, StructuredContent: structured}
}

// failure is the result of a call that failed.
func (f *projectServer) failure(ctx context.Context, p *problem) *mcp.CallToolResult {
	f.logCause(ctx, p)
	content := p.Type + ": " + p.Message
	if p.Field != "" && !strings.Contains(p.Message, p.Field) {
		content += " (" + p.Field + ")"
	}
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: content}},
		StructuredContent: json.RawMessage(rawjson.MustMarshal(failed{p})),
	}
}
