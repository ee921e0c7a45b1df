package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
)

// responseRequest is the body of a request for a response.
type responseRequest struct {
	responses.Request
	body     []byte
	echo     *responseEcho
	items    []json.RawMessage // the input, with references replaced by what they name
	previous *responseRef      // nil for none
	from     *compacted        // what the input continues; nil for none
	named    string            // the id of the conversation; "" for none
	view     string            // that the request's header names; "" for none
	unstored bool              // the previous response need not be stored
	upstream engine.Upstream
	repeat   engine.Repeat // how it is recognised when it is sent again
	mcp      *mcpTools     // that run here; nil for none
}

// read reads a request. The model may be missing where lenient says so.
func (a *responsesAPI) read(r *http.Request, lenient bool) (*responseRequest, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	read := &responseRequest{body: body, echo: &responseEcho{}}
	if err := json.Unmarshal(body, &read.Request); err != nil {
		return nil, api.Refuse(memberOf(err), "the body is not a request for a response: %s", rawjson.Explain(err))
	}
	if err := json.Unmarshal(body, read.echo); err != nil {
		read.echo = &responseEcho{}
		if err := a.echoConversation(read, body); err != nil {
			return nil, err
		}
	}
	if err := read.link(); err != nil {
		return nil, err
	}
	if read.upstream, err = a.engine.Catalog.Served(read.Model, model.ProtocolResponses); (err != nil || read.Model == "") && !lenient {
		return nil, unknownModel(read.Model, a.engine.Catalog.Models())
	}
	read.from, read.items = splitCompacted(read.Input)
	provider := ""
	if read.upstream.Model != nil {
		provider = read.upstream.Model.Info().Provider
	}
	if read.items, err = a.resolve(r.Context(), read.items, provider); err != nil {
		return nil, err
	}
	read.echo.Tools, read.echo.MCP = withoutSecrets(read.echo.Tools), nil
	if read.mcp, err = readMCP(read.Tools, read.upstream); err != nil {
		return nil, err
	}
	return read, a.expandMCP(r.Context(), read)
}

// echoConversation reads the members of a request whose conversation is an object.
func (a *responsesAPI) echoConversation(read *responseRequest, body []byte) error {
	object, err := rawjson.ParseObject(body)
	if err == nil {
		err = json.Unmarshal(rawjson.MustMarshal(object.Without("conversation")), read.echo)
	}
	if err != nil {
		return api.Refuse(memberOf(err), "the body is not a request for a response: %s", err)
	}
	return nil
}

// memberOf is the member of a body that could not be read; "" where that is not known.
func memberOf(err error) string {
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return wrong.Field
	}
	return ""
}

// link finds what a request continues.
func (q *responseRequest) link() error {
	if !rawjson.IsNull(q.Conversation) {
		var ref conversationRef
		if name, ok := rawjson.String(q.Conversation); ok {
			ref.ID = name
		} else if err := json.Unmarshal(q.Conversation, &ref); err != nil {
			return api.Refuse("conversation", "conversation is neither an id nor an object with one")
		}
		q.named, q.echo.Conversation = ref.ID, ref.ID
	}
	if q.PreviousResponseID == "" {
		return nil
	}
	if q.named != "" {
		return api.Refuse("previous_response_id", "previous_response_id and conversation exclude each other: send one of them")
	}
	ref, ok := parseResponseID(q.PreviousResponseID)
	if !ok {
		return noPrevious(q.PreviousResponseID)
	}
	q.previous = &ref
	return nil
}

// served is where the request goes; nil for a request without a model.
func (q *responseRequest) served() *engine.Upstream {
	if q.upstream.Model == nil {
		return nil
	}
	return &q.upstream
}

// noPrevious is the problem of a request that continues an unknown response.
func noPrevious(id string) error {
	return &api.Problem{
		Status: http.StatusBadRequest, Type: api.InvalidRequest, Code: "previous_response_not_found", Param: "previous_response_id",
		Message: fmt.Sprintf("there is no response %s that could be continued", api.Bounded(id)),
	}
}

// resolve replaces the references in an input by the items that they name, and our ids of a provider's own items by the
// provider's.
func (a *responsesAPI) resolve(ctx context.Context, input []json.RawMessage, provider string) ([]json.RawMessage, error) {
	items := slices.Clone(input)
	for i, raw := range items {
		parsed, err := responses.ParseItem(raw)
		if err != nil {
			return nil, api.Refuse(fmt.Sprintf("input[%d]", i), "%s", err)
		}
		_, ours := parseItemID(parsed.ID)
		switch {
		case parsed.Type == "mcp_approval_response":
			items[i], err = a.approval(ctx, raw, provider)
		case parsed.Type == responses.TypeItemReference:
			items[i], err = a.referred(ctx, parsed.ID, provider)
		case ours && isOwnType(parsed.Type):
			if own, failed := a.referred(ctx, parsed.ID, provider); failed == nil {
				items[i] = own
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

// isOwnType reports whether items of a type are a provider's own, which has them under an id of its own.
func isOwnType(kind string) bool {
	switch kind {
	case responses.TypeMessage, responses.TypeReasoning, responses.TypeCompaction, responses.TypeFunctionCall, responses.TypeFunctionCallOutput,
		responses.TypeCustomCall, responses.TypeCustomCallOutput:
		return false
	}
	return true
}

// referred is the item of an id: as the provider has it, where it is the provider's.
func (a *responsesAPI) referred(ctx context.Context, id, provider string) (json.RawMessage, error) {
	found, err := a.item(ctx, id)
	if found.own != nil && found.keeper == provider {
		return found.own, err
	}
	return found.raw, err
}

// approval is a client's answer to a provider's request for an approval, which it names by our id.
func (a *responsesAPI) approval(ctx context.Context, raw json.RawMessage, provider string) (json.RawMessage, error) {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return nil, err
	}
	id, _ := rawjson.String(object.Get("approval_request_id"))
	if _, ours := parseItemID(id); !ours {
		return raw, nil
	}
	asked, err := a.referred(ctx, id, provider)
	if err != nil {
		return nil, err
	}
	if own, err := responses.ParseItem(asked); err == nil && own.ID != "" {
		object.Set("approval_request_id", rawjson.MustMarshal(own.ID))
	}
	return object.Raw(), nil
}

// item finds an item by its id.
func (a *responsesAPI) item(ctx context.Context, id string) (item, error) {
	missing := &api.Problem{Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "item_not_found", Message: fmt.Sprintf("there is no item %s", api.Bounded(id))}
	ref, ok := parseItemID(id)
	if !ok {
		return item{}, missing
	}
	conversation, err := a.engine.Conversations.Find(ctx, a.scope, ref.conversation)
	if errors.Is(err, continuo.ErrNotFound) {
		return item{}, missing
	}
	if err != nil {
		return item{}, err
	}
	deleted, err := a.deletedItems(ctx, conversation)
	if err != nil {
		return item{}, err
	}
	items, err := a.itemsAt(ctx, conversation, ref.seq, deleted)
	for _, found := range items {
		if found.id == id {
			return found, nil
		}
	}
	if err == nil || errors.Is(err, continuo.ErrBadRange) {
		err = missing
	}
	return item{}, err
}

// keeperOf is the provider under which an entry keeps its items: that of an answer, or the one that a client's item was read
// for; "" where it keeps none.
func keeperOf(entry *continuo.Entry) string {
	if entry.Round != nil {
		return entry.Round.Provider
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Vendor)) {
		if name != echoMember && name != mcpMember {
			return name
		}
	}
	return ""
}

// providerOf is the provider of an answer; "" for other entries.
func providerOf(entry *continuo.Entry) string {
	if entry.Round == nil {
		return ""
	}
	return entry.Round.Provider
}

// place finds the conversation of a request and the view of it that the model is shown; "" for everything.
func (a *responsesAPI) place(ctx context.Context, q *responseRequest) (conversation continuo.Conversation, view string, err error) {
	if view, err = a.viewOf(q); err != nil {
		return conversation, view, err
	}
	switch {
	case q.named != "":
		conversation, err = a.engine.Conversations.Find(ctx, a.scope, q.named)
		if errors.Is(err, continuo.ErrNotFound) {
			err = &api.Problem{
				Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "conversation_not_found", Param: "conversation",
				Message: fmt.Sprintf("there is no conversation %s", api.Bounded(q.named)),
			}
		}
		if err == nil {
			err = conversations.TakesMessages(conversation)
		}
		return conversation, view, err
	case q.previous != nil:
		conversation, err = a.continued(ctx, q)
		return conversation, view, err
	case q.from != nil:
		conversation, err = a.expand(ctx, q.from)
		return conversation, view, err
	}
	conversation = continuo.Conversation{ProjectID: a.scope.ProjectID, UserID: a.scope.UserID, ActiveMode: continuo.ModeChat}
	if q.view == "" && (q.upstream.Window == "" || q.upstream.Window == engine.WindowAuto || q.upstream.Window == engine.WindowClient) {
		view = "" // the whole input
	}
	return conversation, view, nil
}

// viewOf is the view of a conversation whose history the server keeps for a request.
func (a *responsesAPI) viewOf(q *responseRequest) (string, error) {
	chosen := cmp.Or(q.view, q.upstream.Window)
	switch {
	case q.view == engine.WindowClient:
		return "", api.Refuse(viewHeader, "the client has not sent its history: name a view, or send the history with store false")
	case chosen != "" && chosen != engine.WindowAuto && chosen != engine.WindowClient:
		if _, err := a.engine.Catalog.View(chosen); err != nil {
			return "", api.Refuse(viewHeader, "%s", err)
		}
		return chosen, nil
	case len(q.Tools) > 0:
		return "codex", nil
	}
	return "continuity", nil
}

// continued returns the conversation that a request with a previous response adds to: that of the response, or a fork
// where it has more.
func (a *responsesAPI) continued(ctx context.Context, q *responseRequest) (continuo.Conversation, error) {
	found, err := a.find(ctx, *q.previous, q.unstored)
	if errors.Is(err, continuo.ErrNotFound) {
		return continuo.Conversation{}, noPrevious(q.PreviousResponseID)
	}
	if err != nil {
		return continuo.Conversation{}, err
	}
	if found.turn.State == continuo.TurnRunning {
		return found.conversation, nil
	}
	return a.continuedAt(ctx, found.conversation, found.last, q.repeat)
}

// continuedAt returns a conversation that ends at a seq: the conversation itself, or a fork of it.
func (a *responsesAPI) continuedAt(ctx context.Context, conversation continuo.Conversation, seq int64, repeat engine.Repeat) (continuo.Conversation, error) {
	if conversation.LastSeq == seq {
		return conversation, nil
	}
	return a.forkOnce(ctx, a.scope, conversation.ID, seq, continuo.Conversation{
		ProjectID: conversation.ProjectID, UserID: conversation.UserID, Title: conversation.Title, ActiveMode: conversation.ActiveMode,
	}, repeat)
}

// clientTools are the functions among the tools of a request.
func clientTools(raws []json.RawMessage, mcp *mcpTools) ([]continuo.ToolSpec, error) {
	var specs []continuo.ToolSpec
	for i, raw := range raws {
		var tool responses.Tool
		if err := json.Unmarshal(raw, &tool); err != nil {
			return nil, api.Refuse(fmt.Sprintf("tools[%d]", i), "%s", err)
		}
		if namespace, ok := responses.NamespaceOf(raw); ok {
			for _, function := range namespace.Functions() {
				specs = append(specs, continuo.ToolSpec{Name: function.Name, Description: function.Description, Parameters: function.Parameters})
			}
			continue
		}
		if mcp != nil && tool.Type == typeMCP {
			continue
		}
		if tool.Type != "function" {
			return nil, api.Refuse(fmt.Sprintf("tools[%d].type", i), "tools of type %q are not offered to this model: only functions are", api.Bounded(tool.Type))
		}
		specs = append(specs, continuo.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	return specs, nil
}
