//lint:file-ignore SA1019 the suite tests what is deprecated too

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What tools ask for that need something of the client before they can answer: they end with a result that says so,
// and are called again with it.
var (
	askName    = &mcp.ElicitParams{Message: "What is your name?", RequestedSchema: properties("name", map[string]any{"type": "string"})}
	askColour  = &mcp.ElicitParams{Message: "Which colour do you like?", RequestedSchema: properties("color", map[string]any{"type": "string"})}
	askConfirm = &mcp.ElicitParams{Message: "Please confirm", RequestedSchema: properties("ok", map[string]any{"type": "boolean"})}
	askContext = &mcp.ElicitParams{Message: "What is it about?", RequestedSchema: properties("context", map[string]any{"type": "string"})}
)

func askModel(question string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: question}}}}
}

// inputRequired is a result that asks for something.
func inputRequired(state string, requests mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}
}

// enteredValue is a field of what the user entered, nil for none.
func enteredValue(responses mcp.InputResponseMap, request, field string) any {
	answer, ok := responses[request].(*mcp.ElicitResult)
	if !ok || answer == nil || answer.Action != "accept" {
		return nil
	}
	return answer.Content[field]
}

func sampled(responses mcp.InputResponseMap, request string) (string, bool) {
	answer, ok := responses[request].(*mcp.CreateMessageWithToolsResult)
	if !ok || answer == nil {
		return "", false
	}
	for _, content := range answer.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			return text.Text, true
		}
	}
	return "", true
}

func rootsOf(responses mcp.InputResponseMap) ([]*mcp.Root, bool) {
	answer, ok := responses["client_roots"].(*mcp.ListRootsResult)
	if !ok || answer == nil {
		return nil, false
	}
	return answer.Roots, true
}

func addInputTools(server *mcp.Server) {
	add := func(name string, run func(*mcp.CallToolParamsRaw) (*mcp.CallToolResult, error)) {
		addFixture(server, name, func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return run(request.Params)
		})
	}
	add("test_input_required_result_elicitation", func(p *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
		if name, ok := enteredValue(p.InputResponses, "user_name", "name").(string); ok && name != "" {
			return textResult("Hello, " + name + "!"), nil
		}
		return inputRequired("", mcp.InputRequestMap{"user_name": askName}), nil
	})
	add("test_input_required_result_sampling", func(p *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
		if text, ok := sampled(p.InputResponses, "capital_question"); ok {
			return textResult("The model said: " + text), nil
		}
		return inputRequired("", mcp.InputRequestMap{"capital_question": askModel("What is the capital of France?")}), nil
	})
	add("test_input_required_result_list_roots", func(p *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
		roots, ok := rootsOf(p.InputResponses)
		if !ok {
			return inputRequired("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}), nil
		}
		text := fmt.Sprint(len(roots), " roots:")
		for _, root := range roots {
			text += " " + root.URI
		}
		return textResult(text), nil
	})
	add("test_input_required_result_request_state", confirms("asked-once"))
	add("test_input_required_result_tampered_state", confirms("sealed"))
	add("test_input_required_result_multiple_inputs", threeInputs)
	add("test_input_required_result_multi_round", twoRounds)
	addCapabilityTools(server)
}

// confirms asks for a confirmation and gives the client a state to bring back as it was.
func confirms(state string) func(*mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	return func(p *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
		switch {
		case p.RequestState != "" && p.RequestState != state:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the state is not the one that was given out"}
		case p.RequestState == state && enteredValue(p.InputResponses, "confirm", "ok") != nil:
			return textResult("state-ok"), nil
		}
		return inputRequired(state, mcp.InputRequestMap{"confirm": askConfirm}), nil
	}
}

func threeInputs(p *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	name, named := enteredValue(p.InputResponses, "user_name", "name").(string)
	greeting, greeted := sampled(p.InputResponses, "greeting")
	roots, rooted := rootsOf(p.InputResponses)
	if named && greeted && rooted {
		return textResult(fmt.Sprintf("%s %s, with %d roots", greeting, name, len(roots))), nil
	}
	return inputRequired("three", mcp.InputRequestMap{"user_name": askName, "greeting": askModel("Greet somebody."), "client_roots": &mcp.ListRootsParams{}}), nil
}

// twoRounds keeps what the first round brought in the state of the second.
func twoRounds(p *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	name, second := strings.CutPrefix(p.RequestState, "second:")
	switch {
	case second:
		return textResult(fmt.Sprintf("%s likes %v", name, enteredValue(p.InputResponses, "step2", "color"))), nil
	case p.RequestState == "first":
		return inputRequired(fmt.Sprint("second:", enteredValue(p.InputResponses, "step1", "name")), mcp.InputRequestMap{"step2": askColour}), nil
	}
	return inputRequired("first", mcp.InputRequestMap{"step1": askName}), nil
}

// addCapabilityTools adds tools that look at what the client can do.
func addCapabilityTools(server *mcp.Server) {
	addFixture(server, "test_input_required_result_capabilities", func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		can, requests := request.ClientCapabilities(), mcp.InputRequestMap{}
		if can != nil && can.Elicitation != nil {
			requests["user_name"] = askName
		}
		if can != nil && can.Sampling != nil {
			requests["greeting"] = askModel("Greet somebody.")
		}
		if can != nil && can.RootsV2 != nil {
			requests["client_roots"] = &mcp.ListRootsParams{}
		}
		if len(requests) == 0 || len(request.Params.InputResponses) > 0 {
			return textResult("done"), nil
		}
		return inputRequired("", requests), nil
	})
	addFixture(server, "test_missing_capability", func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if can := request.ClientCapabilities(); can != nil && can.Sampling != nil {
			return textResult("done"), nil
		}
		data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client must be able to sample", Data: data}
	})
	addFixture(server, "test_streaming_elicitation", answering(&mcp.TextContent{Text: "nothing was asked"}))
}

func addFixtureResources(server *mcp.Server) {
	give := func(contents mcp.ResourceContents) mcp.ResourceHandler {
		return func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			given := contents
			given.URI = request.Params.URI
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&given}}, nil
		}
	}
	text := mcp.ResourceContents{MIMEType: "text/plain", Text: "This is the content of the static text resource."}
	server.AddResource(&mcp.Resource{URI: "test://static-text", Name: "static-text", MIMEType: "text/plain"}, give(text))
	server.AddResource(&mcp.Resource{URI: "test://watched-resource", Name: "watched-resource", MIMEType: "text/plain"}, give(text))
	server.AddResource(&mcp.Resource{URI: "test://static-binary", Name: "static-binary", MIMEType: "image/png"}, give(mcp.ResourceContents{MIMEType: "image/png", Blob: onePixel().Data}))
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", MIMEType: "application/json"},
		func(ctx context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(request.Params.URI, "test://template/"), "/data")
			data, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return give(mcp.ResourceContents{MIMEType: "application/json", Text: string(data)})(ctx, request)
		})
}

func addPrompt(server *mcp.Server, name string, arguments []string, content ...mcp.Content) {
	prompt := &mcp.Prompt{Name: name, Description: "A fixture of the conformance suite"}
	for _, argument := range arguments {
		prompt.Arguments = append(prompt.Arguments, &mcp.PromptArgument{Name: argument, Required: true})
	}
	server.AddPrompt(prompt, func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		result := &mcp.GetPromptResult{}
		for _, one := range content {
			if uri := request.Params.Arguments["resourceUri"]; uri != "" {
				one = embedded(uri, "Embedded resource content for testing.")
			}
			if len(arguments) == 2 {
				one = &mcp.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", request.Params.Arguments["arg1"], request.Params.Arguments["arg2"])}
			}
			result.Messages = append(result.Messages, &mcp.PromptMessage{Role: "user", Content: one})
		}
		return result, nil
	})
}

func addFixturePrompts(server *mcp.Server) {
	words := &mcp.TextContent{Text: "This is a simple prompt for testing."}
	addPrompt(server, "test_simple_prompt", nil, words)
	addPrompt(server, "test_prompt_with_arguments", []string{"arg1", "arg2"}, words)
	addPrompt(server, "test_prompt_with_embedded_resource", []string{"resourceUri"}, words)
	addPrompt(server, "test_prompt_with_image", nil, onePixel(), words)
	server.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "A fixture of the conformance suite"}, func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		about := enteredValue(request.Params.InputResponses, "user_context", "context")
		if about == nil {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": askContext}}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprint("It is about ", about)}}}}, nil
	})
}
