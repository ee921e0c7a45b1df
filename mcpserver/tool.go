package mcpserver

import (
	"context"
	"embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// toolRow is a tool. Its description is NAME.md, its schemas are schema/NAME.input.json and .output.json.
type toolRow struct {
	name, title string
	effect      effect
	run         func(*call) (answer, error)
	// anyName ignores unknown arguments with a warning, instead of refusing them.
	anyName bool
}

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

// tools lists the tools in the order of their typical use.
func (f *projectServer) tools() []toolRow {
	return []toolRow{
		{"create_real_task", "Create a task with its history", adds, f.createTask, true},
		{"get_real_task_status", "Show the status of a task", reads, f.taskStatus, false},
		{"list_real_tasks", "List tasks", reads, f.listTasks, false},
		{"get_task_prompt", "Show the prompt of a task", reads, f.taskPrompt, false},
		{"deploy_headless_agent", "Set an agent to work on a task", commits, f.deployAgent, false},
		{"get_agent_output", "Read the output of an agent", reads, f.agentOutput, false},
		{"report_agent_finding", "Report a finding", adds, f.reportFinding, false},
		{"kill_real_agent", "End an agent's work", ends, f.killAgent, false},
		{"search_conversations", "Search the conversations", reads, f.searchConversations, false},
		{"get_context", "Show what a model would be sent", reads, f.getContext, false},
		{"append_message", "Append a message", adds, f.appendMessage, false},
	}
}

//go:embed *.md schema/*.json
var texts embed.FS

// text reads an embedded file; a test checks that it exists.
func text(name string) string {
	data, err := texts.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(data))
}

func (f *projectServer) addTools() {
	for _, row := range f.tools() {
		input := json.RawMessage(text("schema/" + row.name + ".input.json"))
		known := propertiesOf(input)
		f.mcp.AddTool(&mcp.Tool{
			Name: row.name, Title: row.title, Description: text(row.name + ".md"), Annotations: row.effect.annotations(row.title),
			InputSchema: input, OutputSchema: orError(text("schema/" + row.name + ".output.json")),
		}, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return f.call(ctx, request, row, known), nil
		})
	}
}

// propertiesOf lists the names of a schema's properties in order.
func propertiesOf(schema json.RawMessage) (names []string) {
	object, _ := rawjson.ParseObject(schema)
	properties, _ := rawjson.ParseObject(object.Get("properties"))
	for _, property := range properties {
		names = append(names, property.Key)
	}
	return names
}

// orError makes a schema of results that may be errors instead: clients check errors against it too.
func orError(schema string) json.RawMessage {
	object, err := rawjson.ParseObject([]byte(schema))
	if err != nil {
		panic(err)
	}
	properties, err := rawjson.ParseObject(object.Get("properties"))
	if err != nil {
		panic(err)
	}
	properties.Set("error", json.RawMessage(text("schema/error.json")))
	object.Set("properties", rawjson.MustMarshal(properties))
	object.Set("anyOf", rawjson.MustMarshal([]map[string]json.RawMessage{{"required": object.Get("required")}, {"required": json.RawMessage(`["error"]`)}}))
	return object.Without("required").Raw()
}

// call is one call of a tool.
type call struct {
	*arguments
	ctx     context.Context //nolint:containedctx // lives as long as the call
	request *mcp.CallToolRequest
	known   []string
}

// answer is a tool's result: value for programs, and text for a model; the default of text is value's JSON.
type answer struct {
	value any
	text  string
}

// call runs a tool. Every error is reported in the result, for the calling model to see.
func (f *projectServer) call(ctx context.Context, request *mcp.CallToolRequest, row toolRow, known []string) *mcp.CallToolResult {
	c := &call{arguments: readArguments(request.Params.Arguments), ctx: ctx, request: request, known: known}
	if !row.anyName {
		c.onlyKnown(known)
	}
	found, err := answer{}, c.err
	if err == nil {
		found, err = row.run(c)
	}
	if err != nil {
		return f.failure(ctx, err)
	}
	structured := json.RawMessage(rawjson.MustMarshal(found.value))
	if found.text == "" {
		found.text = string(structured)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: found.text}}, StructuredContent: structured}
}

// failure is the result of a call that failed.
func (f *projectServer) failure(ctx context.Context, err error) *mcp.CallToolResult {
	p := problemOf(err)
	f.logCause(ctx, p)
	said := p.Type + ": " + p.Message
	if p.Field != "" && !strings.Contains(p.Message, p.Field) {
		said += " (" + p.Field + ")"
	}
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: said}},
		StructuredContent: json.RawMessage(rawjson.MustMarshal(map[string]*problem{"error": p})),
	}
}

// names lists names of a type, without the empty one.
func names[T ~string](all ...T) (list []string) {
	for _, name := range all {
		if name != "" && !slices.Contains(list, string(name)) {
			list = append(list, string(name))
		}
	}
	return list
}
