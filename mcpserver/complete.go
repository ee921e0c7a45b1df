package mcpserver

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
)

// The limits of a completion: how many values it shows, and how many of the newest conversations or entries it searches.
const (
	maxValues       = 100
	maxCompleted    = 1000
	completionPages = 200
)

// complete completes the ids in URIs of resources and in arguments of prompts.
func (f *projectServer) complete(ctx context.Context, request *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	argument, about := request.Params.Argument, request.Params.Ref
	subject := about.URI
	if about.Type == "ref/prompt" {
		subject = about.Name
	}
	var values []string
	var err error
	switch {
	case argument.Name == "id" && strings.HasPrefix(subject, "continuo://tasks/"):
		values, err = f.ids(ctx, continuo.KindTask, taskID, argument.Value)
	case argument.Name == "id" && strings.HasPrefix(subject, "continuo://conversations/"), argument.Name == "conversation":
		values, err = f.ids(ctx, continuo.KindUser, func(c continuo.Conversation) string { return c.ID }, argument.Value)
	case argument.Name == "call" && request.Params.Context != nil:
		values, err = f.results(ctx, request.Params.Context.Arguments["id"], argument.Value)
	}
	if err != nil {
		return nil, f.protocolError(ctx, "", err)
	}
	shown := values[:min(len(values), maxValues)]
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
		Values: append([]string{}, shown...), HasMore: len(shown) < len(values), Total: len(values),
	}}, nil
}

// taskID is the id of the task that a conversation belongs to.
func taskID(conversation continuo.Conversation) string {
	return "task_" + strings.TrimPrefix(conversation.ID, "conv_")
}

// ids lists the newest conversations of a kind whose id begins with a text, or whose title or key contains it.
func (f *projectServer) ids(ctx context.Context, kind continuo.Kind, id func(continuo.Conversation) string, begun string) (found []string, err error) {
	query := continuo.ConversationQuery{ProjectID: f.scope.ProjectID, UserID: f.scope.UserID, Kind: kind, Limit: completionPages}
	for examined := 0; examined < maxCompleted; examined += completionPages {
		page, err := f.engine.Conversations.List(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, conversation := range page {
			name := id(conversation)
			if strings.HasPrefix(name, begun) || containsFold(conversation.Title, begun) || containsFold(conversation.Key, begun) {
				found = append(found, name)
			}
		}
		if len(page) < query.Limit {
			break
		}
		last := page[len(page)-1]
		query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
	return found, nil
}

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// results lists the tool results of a conversation, the newest first; none for an unknown conversation.
func (f *projectServer) results(ctx context.Context, id, begun string) (found []string, err error) {
	conversation, err := f.conversation(ctx, id)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	examined := 0
	for entry, err := range f.engine.Conversations.Read(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return nil, err
		}
		if name := resultName(&entry); name != "" && strings.HasPrefix(name, begun) {
			found = append(found, name)
		}
		if examined++; examined == maxCompleted {
			break
		}
	}
	return found, nil
}
