package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
)

// promptRow is a prompt. Its description is prompt_NAME.md, its text prompt_NAME_text.md, with {{NAMES}} to fill in.
type promptRow struct {
	name, title string
	arguments   []*mcp.PromptArgument
	// fill returns the values of the names, given the conversation and the arguments.
	fill func(ctx context.Context, conversation continuo.Conversation, arguments map[string]string) (map[string]string, error)
}

func (f *projectServer) prompts() []promptRow {
	about := &mcp.PromptArgument{Name: "conversation", Title: "Conversation", Description: "Id or key of a conversation of the log", Required: true}
	return []promptRow{
		{"hand_off", "Hand off work", []*mcp.PromptArgument{about, {Name: "work", Title: "Work", Description: "What is to be done. Default: what the conversation is about."}}, f.fillHandOff},
		{"resume", "Resume a conversation", []*mcp.PromptArgument{about}, f.fillResume},
	}
}

func (f *projectServer) addPrompts() {
	for _, row := range f.prompts() {
		f.mcp.AddPrompt(&mcp.Prompt{
			Name: row.name, Title: row.title, Description: text("prompt_" + row.name + ".md"), Arguments: row.arguments,
		}, func(ctx context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			filled, err := f.prompt(ctx, row, request.Params.Arguments)
			return filled, f.protocolError(ctx, "", err)
		})
	}
}

func (f *projectServer) prompt(ctx context.Context, row promptRow, arguments map[string]string) (*mcp.GetPromptResult, error) {
	for _, argument := range row.arguments {
		if argument.Required && strings.TrimSpace(arguments[argument.Name]) == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("missing_field: missing required argument '%s'", argument.Name)}
		}
	}
	conversation, err := f.conversation(ctx, arguments["conversation"])
	if err != nil {
		return nil, err
	}
	values, err := row.fill(ctx, conversation, arguments)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	content := strings.NewReplacer(pairs...).Replace(text("prompt_" + row.name + "_text.md"))
	return &mcp.GetPromptResult{
		Description: fmt.Sprintf("%s: %s", row.title, titleOf(conversation)),
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: content}}},
	}, nil
}

func (f *projectServer) fillHandOff(_ context.Context, conversation continuo.Conversation, arguments map[string]string) (map[string]string, error) {
	work := strings.TrimSpace(arguments["work"])
	if work == "" {
		work = "What this conversation is about and what is still open in it."
	}
	return map[string]string{"CONVERSATION": conversation.ID, "ENTRIES": fmt.Sprint(conversation.LastSeq), "WORK": work}, nil
}

func (f *projectServer) fillResume(ctx context.Context, conversation continuo.Conversation, _ map[string]string) (map[string]string, error) {
	transcript, _, err := f.engine.Contexts.Transcript(ctx, conversation, 0, nil)
	return map[string]string{"CONVERSATION": conversation.ID, "TRANSCRIPT": strings.TrimSpace(transcript.String())}, err
}
