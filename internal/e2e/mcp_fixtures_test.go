//lint:file-ignore SA1019 the suite tests what is deprecated too

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addFixtures adds to a server what the conformance suite calls by name; what each has to answer is the suite's.
func addFixtures(server *mcp.Server) {
	addContentTools(server)
	addInteractiveTools(server)
	addInputTools(server)
	addFixtureResources(server)
	addFixturePrompts(server)
}

// fixture is a tool without arguments that matter.
type fixture func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func addFixture(server *mcp.Server, name string, run fixture) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: "A fixture of the conformance suite"},
		func(ctx context.Context, request *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			result, err := run(ctx, request)
			return result, nil, err
		})
}

func textResult(text string) *mcp.CallToolResult { return contentResult(&mcp.TextContent{Text: text}) }

func contentResult(content ...mcp.Content) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: content}
}

// answering is a tool that always answers the same.
func answering(content ...mcp.Content) fixture {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return contentResult(content...), nil
	}
}

func embedded(uri, text string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}
}

// onePixel is an image, silence a sound.
func onePixel() *mcp.ImageContent {
	pixel := image.NewRGBA(image.Rect(0, 0, 1, 1))
	pixel.Set(0, 0, color.White)
	var data bytes.Buffer
	_ = png.Encode(&data, pixel) // into memory
	return &mcp.ImageContent{Data: data.Bytes(), MIMEType: "image/png"}
}

func silence() *mcp.AudioContent {
	var data bytes.Buffer
	data.WriteString("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00")
	_ = binary.Write(&data, binary.LittleEndian, []uint16{1, 1, 8000, 0, 16000, 0, 2, 16}) // PCM, mono, 8 kHz, 16 bits
	data.WriteString("data\x00\x00\x00\x00")
	return &mcp.AudioContent{Data: data.Bytes(), MIMEType: "audio/wav"}
}

func addContentTools(server *mcp.Server) {
	addFixture(server, "test_simple_text", answering(&mcp.TextContent{Text: "This is a simple text response for testing."}))
	addFixture(server, "test_image_content", answering(onePixel()))
	addFixture(server, "test_audio_content", answering(silence()))
	addFixture(server, "test_embedded_resource", answering(embedded("test://embedded-resource", "This is an embedded resource content.")))
	addFixture(server, "test_multiple_content_types", answering(
		&mcp.TextContent{Text: "Multiple content types test:"}, onePixel(), embedded("test://mixed-content-resource", `{"test":"data","value":123}`)))
	addFixture(server, "test_error_handling", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("This tool intentionally returns an error for testing") //nolint:staticcheck // the suite's words
	})
	server.AddTool(&mcp.Tool{Name: "json_schema_2020_12_tool", Description: "A fixture of the conformance suite", InputSchema: broadSchema()},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return textResult("ok"), nil })
	server.AddTool(&mcp.Tool{Name: "test_x_mcp_header", Description: "A fixture of the conformance suite", InputSchema: map[string]any{
		"type": "object", "properties": map[string]any{
			"region": map[string]any{"type": "string", "x-mcp-header": "Region"}, "level": map[string]any{"type": "integer"},
		},
	}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return textResult("ok"), nil })
}

// broadSchema has the words of JSON Schema 2020-12 that must arrive at clients as they are.
func broadSchema() map[string]any {
	word := map[string]any{"type": "string"}
	requires := func(name string) map[string]any { return map[string]any{"required": []string{name}} }
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
		"$defs": map[string]any{"address": map[string]any{
			"$anchor": "addressDef", "type": "object", "properties": map[string]any{"street": word, "city": word},
		}},
		"properties": map[string]any{
			"name": word, "address": map[string]any{"$ref": "#/$defs/address"}, "phone": word, "email": word,
			"contactMethod": map[string]any{"type": "string", "enum": []string{"phone", "email"}},
		},
		"allOf": []any{map[string]any{"anyOf": []any{requires("phone"), requires("email")}}},
		"if":    map[string]any{"properties": map[string]any{"contactMethod": map[string]any{"const": "phone"}}, "required": []string{"contactMethod"}},
		"then":  requires("phone"), "else": requires("email"),
	}
}

// addInteractiveTools adds tools that tell or ask the client something while they run.
func addInteractiveTools(server *mcp.Server) {
	addFixture(server, "test_tool_with_logging", func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
				return nil, err
			}
		}
		return textResult("logged"), nil
	})
	addFixture(server, "test_logging_tool", func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textResult("logged"), request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "who did not ask must not see this"})
	})
	addFixture(server, "test_tool_with_progress", func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		token := request.Params.GetProgressToken()
		for _, done := range []float64{0, 50, 100} {
			if err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return textResult(fmt.Sprint(token)), nil
	})
	addFixture(server, "test_reconnection", func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if request.Extra != nil && request.Extra.CloseSSEStream != nil {
			request.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{})
		}
		return textResult("back again"), nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "test_sampling", Description: "A fixture of the conformance suite"}, sample)
	mcp.AddTool(server, &mcp.Tool{Name: "test_elicitation", Description: "A fixture of the conformance suite"},
		func(ctx context.Context, request *mcp.CallToolRequest, input struct {
			Message string `json:"message"`
		},
		) (*mcp.CallToolResult, any, error) {
			return elicit(ctx, request, input.Message, properties("username", map[string]any{"type": "string"}))
		})
	addElicitation(server, "test_elicitation_sep1034_defaults", defaults())
	addElicitation(server, "test_elicitation_sep1330_enums", enums())
	addFixture(server, "test_trigger_tool_change", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addFixture(server, "test_changed", answering())
		return textResult("changed"), nil
	})
	addFixture(server, "test_trigger_prompt_change", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addPrompt(server, "test_changed", nil)
		return textResult("changed"), nil
	})
}

func sample(ctx context.Context, request *mcp.CallToolRequest, input struct {
	Prompt string `json:"prompt"`
},
) (*mcp.CallToolResult, any, error) {
	answer, err := request.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
		MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: input.Prompt}}},
	})
	if err != nil {
		return nil, nil, err
	}
	text, ok := answer.Content.(*mcp.TextContent)
	if !ok {
		return nil, nil, fmt.Errorf("the client answered with %T", answer.Content)
	}
	return textResult("LLM response: " + text.Text), nil, nil
}

func addElicitation(server *mcp.Server, name string, schema map[string]any) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: "A fixture of the conformance suite"},
		func(ctx context.Context, request *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			return elicit(ctx, request, "Please choose", schema)
		})
}

func elicit(ctx context.Context, request *mcp.CallToolRequest, message string, schema map[string]any) (*mcp.CallToolResult, any, error) {
	answer, err := request.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: schema})
	if err != nil {
		return nil, nil, err
	}
	return textResult(fmt.Sprintf("Elicitation completed: action=%s, content=%v", answer.Action, answer.Content)), nil, nil
}

// properties is the schema of an object that must have the first property; names and schemas come in turn.
func properties(pairs ...any) map[string]any {
	all := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i].(string)] = pairs[i+1]
	}
	return map[string]any{"type": "object", "properties": all, "required": []string{pairs[0].(string)}}
}

func defaults() map[string]any {
	return properties(
		"name", map[string]any{"type": "string", "default": "John Doe"},
		"age", map[string]any{"type": "integer", "default": 30},
		"score", map[string]any{"type": "number", "default": 95.5},
		"status", map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
		"verified", map[string]any{"type": "boolean", "default": true},
	)
}

func enums() map[string]any {
	titled := func(begin string) (list []map[string]any) {
		for i, word := range []string{"First", "Second", "Third"} {
			list = append(list, map[string]any{"const": fmt.Sprint(begin, i+1), "title": word + " " + strings.ToUpper(begin[:1]) + begin[1:]})
		}
		return list
	}
	three := []string{"option1", "option2", "option3"}
	return properties(
		"untitledSingle", map[string]any{"type": "string", "enum": three},
		"titledSingle", map[string]any{"type": "string", "oneOf": titled("value")},
		"legacyEnum", map[string]any{"type": "string", "enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"Option One", "Option Two", "Option Three"}},
		"untitledMulti", map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": three}},
		"titledMulti", map[string]any{"type": "array", "items": map[string]any{"anyOf": titled("value")}},
	)
}
