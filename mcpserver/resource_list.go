package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
)

// pageSize is how many conversations or tasks a page of the list of resources has.
const pageSize = 50

// listed answers resources/list from the log: first the conversations, the most recently changed first, each with its
// transcript, then the prompts of tasks. Resources that callers added to the SDK's server come before all of them.
func (f *projectServer) listed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		list, ok := request.(*mcp.ListResourcesRequest)
		if !ok {
			return next(ctx, method, request)
		}
		cursor := ""
		if list.Params != nil {
			cursor = list.Params.Cursor
		}
		at := listCursor{}
		if cursor != "" && (api.ReadCursor(cursor, &at) != nil || at.Kind != continuo.KindUser && at.Kind != continuo.KindTask) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none that this list gave out"}
		}
		result := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
		result.CacheScope = "private"
		if cursor == "" {
			own, err := f.added(ctx, method, *list, next)
			if err != nil {
				return nil, err
			}
			result.Resources = append(result.Resources, own...)
		}
		if err := f.listPage(ctx, result, at); err != nil {
			return nil, f.protocolError(ctx, "", err)
		}
		return result, nil
	}
}

// added lists the resources of the SDK's server.
func (f *projectServer) added(ctx context.Context, method string, request mcp.ListResourcesRequest, next mcp.MethodHandler) (own []*mcp.Resource, err error) {
	request.Params = &mcp.ListResourcesParams{}
	for {
		result, err := next(ctx, method, &request)
		if err != nil {
			return nil, err
		}
		page := result.(*mcp.ListResourcesResult) //nolint:forcetypeassert // what the method answers
		own = append(own, page.Resources...)
		if request.Params.Cursor = page.NextCursor; page.NextCursor == "" {
			return own, nil
		}
	}
}

// listPage adds the page that begins after a cursor.
func (f *projectServer) listPage(ctx context.Context, result *mcp.ListResourcesResult, at listCursor) error {
	found, err := f.engine.Conversations.List(ctx, continuo.ConversationQuery{
		ProjectID: f.scope.ProjectID, UserID: f.scope.UserID, Kind: at.Kind, Limit: pageSize + 1, Before: continuo.ConversationCursor{UpdatedAt: at.UpdatedAt, ID: at.ID},
	})
	if err != nil {
		return err
	}
	for _, conversation := range found[:min(len(found), pageSize)] {
		if at.Kind == continuo.KindTask {
			result.Resources = append(result.Resources, promptResource(conversation))
		} else {
			result.Resources = append(result.Resources, conversationResources(conversation)...)
		}
	}
	switch {
	case len(found) > pageSize:
		last := found[pageSize-1]
		result.NextCursor = *api.WriteCursor(listCursor{at.Kind, last.UpdatedAt, last.ID})
	case at.Kind == continuo.KindUser:
		tasks, err := f.engine.Conversations.List(ctx, continuo.ConversationQuery{ProjectID: f.scope.ProjectID, UserID: f.scope.UserID, Kind: continuo.KindTask, Limit: 1})
		if err != nil {
			return err
		}
		if len(tasks) > 0 {
			result.NextCursor = *api.WriteCursor(listCursor{Kind: continuo.KindTask})
		}
	}
	return nil
}

// conversationResources are a conversation and its transcript.
func conversationResources(conversation continuo.Conversation) []*mcp.Resource {
	title := titleOf(conversation)
	annotations := &mcp.Annotations{LastModified: conversation.UpdatedAt.UTC().Format(timeFormat)}
	return []*mcp.Resource{
		{URI: conversationURI(conversation.ID), Name: conversation.ID, Title: title, MIMEType: jsonType, Annotations: annotations, Description: "The conversation and its newest entries"},
		{URI: transcriptURI(conversation.ID), Name: conversation.ID + "/transcript", Title: title + " (transcript)", MIMEType: textType, Annotations: annotations, Description: "The conversation as a text"},
	}
}

const timeFormat = "2006-01-02T15:04:05Z"

func titleOf(conversation continuo.Conversation) string {
	if conversation.Title != "" {
		return conversation.Title
	}
	return conversation.ID
}

func promptResource(conversation continuo.Conversation) *mcp.Resource {
	id := taskID(conversation)
	return &mcp.Resource{
		URI: promptURI(id), Name: id + "/prompt", Title: titleOf(conversation) + " (prompt)", MIMEType: textType,
		Annotations: &mcp.Annotations{LastModified: conversation.UpdatedAt.UTC().Format(timeFormat)}, Description: "The prompt of an agent for the task",
	}
}

// listCursor is the position where a page of the list ends.
type listCursor struct {
	Kind      continuo.Kind `json:"kind,omitempty"`
	UpdatedAt time.Time     `json:"updated_at"`
	ID        string        `json:"id"`
}
