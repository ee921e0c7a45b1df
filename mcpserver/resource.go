package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

const (
	jsonType = "application/json"
	textType = "text/plain"
)

// kindOfResource is a family of resources.
type kindOfResource struct {
	template, name, title, mimeType string
	// read returns the text of a resource, given the values of the template's variables in order.
	read func(ctx context.Context, values []string) (string, error)
	// conversation finds the conversation whose changes are changes of the resource.
	conversation func(ctx context.Context, values []string) (continuo.Conversation, error)
}

// resourceKinds lists the families; the description of each is resource_NAME.md.
func (f *projectServer) resourceKinds() []kindOfResource {
	return []kindOfResource{
		{"continuo://conversations/{id}", "conversation", "Conversation", jsonType, f.readConversation, f.conversationOf},
		{"continuo://conversations/{id}/transcript", "transcript", "Transcript", textType, f.readTranscript, f.conversationOf},
		{"continuo://conversations/{id}/tool-results/{call}", "tool_result", "Tool result", textType, f.readToolResult, f.conversationOf},
		{"continuo://tasks/{id}/prompt", "task_prompt", "Task prompt", textType, f.readPrompt, f.conversationOfTask},
	}
}

func conversationURI(id string) string { return "continuo://conversations/" + url.PathEscape(id) }
func transcriptURI(id string) string   { return conversationURI(id) + "/transcript" }
func promptURI(id string) string       { return "continuo://tasks/" + url.PathEscape(id) + "/prompt" }

// maxURI bounds a URI, in bytes.
const maxURI = 1000

// parseURI finds the family of a URI and the values of its variables; false when there is none.
func (f *projectServer) parseURI(uri string) (kindOfResource, []string, bool) {
	have := strings.Split(uri, "/")
	for _, kind := range f.resourceKinds() {
		want := strings.Split(kind.template, "/")
		if len(have) != len(want) || len(uri) > maxURI {
			continue
		}
		var values []string
		matches := true
		for i := range want {
			if !strings.HasPrefix(want[i], "{") {
				matches = matches && want[i] == have[i]
				continue
			}
			value, err := url.PathUnescape(have[i])
			matches = matches && err == nil && value != "" && utf8.ValidString(value)
			values = append(values, value)
		}
		if matches {
			return kind, values, true
		}
	}
	return kindOfResource{}, nil, false
}

func (f *projectServer) addResources() {
	for _, kind := range f.resourceKinds() {
		f.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: kind.template, Name: kind.name, Title: kind.title, MIMEType: kind.mimeType, Description: text("resource_" + kind.name + ".md"),
		}, f.readResource)
	}
}

func (f *projectServer) readResource(ctx context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := request.Params.URI
	kind, values, ok := f.parseURI(uri)
	if !ok {
		return nil, resourceNotFound(uri)
	}
	content, err := kind.read(ctx, values)
	if err != nil {
		return nil, f.protocolError(ctx, uri, err)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: kind.mimeType, Text: content}}}, nil
}

func (f *projectServer) conversationOf(ctx context.Context, values []string) (continuo.Conversation, error) {
	return f.conversation(ctx, values[0])
}

func (f *projectServer) conversationOfTask(ctx context.Context, values []string) (continuo.Conversation, error) {
	status, err := f.engine.Tasks.Get(ctx, f.scope, values[0])
	if err != nil {
		return continuo.Conversation{}, err
	}
	return f.engine.Conversations.Conversation(ctx, status.ConversationID)
}

// The limits of the entries that the resource of a conversation shows.
const (
	maxEntries    = 100
	maxEntryBytes = 1 << 20 // of all of them; the newest is shown whatever its size
)

func (f *projectServer) readConversation(ctx context.Context, values []string) (string, error) {
	conversation, err := f.conversationOf(ctx, values)
	if err != nil {
		return "", err
	}
	shown := struct {
		Conversation continuo.Conversation `json:"conversation"`
		Entries      []rawjson.Object      `json:"entries"`
		Earlier      int64                 `json:"earlier_entries"`
	}{Conversation: conversation, Entries: []rawjson.Object{}, Earlier: conversation.LastSeq}
	size := 0
	for entry, err := range f.engine.Conversations.Read(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return "", err
		}
		written, err := rawjson.Marshal(entry)
		if err != nil {
			return "", err
		}
		if size += len(written); len(shown.Entries) == maxEntries || size > maxEntryBytes && len(shown.Entries) > 0 {
			break
		}
		object, err := rawjson.ParseObject(written)
		if err != nil {
			return "", err
		}
		shown.Entries, shown.Earlier = append(shown.Entries, object), entry.Seq-1
	}
	slices.Reverse(shown.Entries)
	written, err := rawjson.Marshal(shown)
	return string(written), err
}

func (f *projectServer) readTranscript(ctx context.Context, values []string) (string, error) {
	conversation, err := f.conversationOf(ctx, values)
	if err != nil {
		return "", err
	}
	transcript, _, err := f.engine.Contexts.Transcript(ctx, conversation, 0, nil)
	return transcript.String(), err
}

func (f *projectServer) readPrompt(ctx context.Context, values []string) (string, error) {
	status, err := f.engine.Tasks.Get(ctx, f.scope, values[0])
	if err != nil {
		return "", err
	}
	return status.Prompt()
}

// maxResult is how many bytes of a tool's output its resource shows.
const maxResult = 4 << 20

func (f *projectServer) readToolResult(ctx context.Context, values []string) (string, error) {
	conversation, err := f.conversationOf(ctx, values)
	if err != nil {
		return "", err
	}
	entry, err := f.engine.Conversations.EntryByOutputRef(ctx, conversation, resultsFolder+values[1]+".json")
	if err != nil {
		return "", fmt.Errorf("tool result %q: %w", cut(values[1], 100), err)
	}
	output := f.engine.Conversations.Output(ctx, &entry)
	data, err := io.ReadAll(io.LimitReader(output, maxResult))
	if err != nil {
		return "", err
	}
	content := strings.ToValidUTF8(string(data), "\uFFFD")
	if rest := output.Size() - int64(len(data)); rest > 0 {
		content += fmt.Sprintf("\n... (%d more bytes are left out; the tool fs.read reads any part of %s)", rest, entry.OutputRef)
	}
	return content, nil
}

// resultsFolder is the log's folder for tool results, whose names there are the ids of their calls.
const resultsFolder = "@state/logs/tool-results/"

// resultName is the name of a tool's result in the URI of its resource, "" for any other entry.
func resultName(entry *continuo.Entry) string {
	name, ok := strings.CutPrefix(entry.OutputRef, resultsFolder)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, ".json")
}
