package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// maxItems bounds how many items a request may add, as at OpenAI.
const maxItems = 20

// conversationRoutes adds the calls of OpenAI's Conversations API to a mux.
func (a *responsesAPI) conversationRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/conversations", a.handler(a.createConversation))
	mux.HandleFunc("GET /v1/conversations/{id}", a.handler(a.showConversation))
	mux.HandleFunc("POST /v1/conversations/{id}", a.handler(a.updateConversation))
	mux.HandleFunc("DELETE /v1/conversations/{id}", a.handler(a.deleteConversation))
	mux.HandleFunc("POST /v1/conversations/{id}/items", a.handler(a.createItems))
	mux.HandleFunc("GET /v1/conversations/{id}/items", a.handler(a.listItems))
	mux.HandleFunc("GET /v1/conversations/{id}/items/{item}", a.handler(a.showItem))
	mux.HandleFunc("DELETE /v1/conversations/{id}/items/{item}", a.handler(a.deleteItem))
}

// wireConversation is a conversation in OpenAI's form.
type wireConversation struct {
	ID        string          `json:"id"`
	Object    string          `json:"object"` // "conversation"
	CreatedAt int64           `json:"created_at"`
	Metadata  json.RawMessage `json:"metadata"`
}

func writeConversation(w http.ResponseWriter, conversation continuo.Conversation) error {
	metadata := conversation.Metadata
	if rawjson.IsNull(metadata) {
		metadata = json.RawMessage("{}")
	}
	writeJSON(w, http.StatusOK, wireConversation{conversation.ID, "conversation", conversation.CreatedAt.Unix(), metadata})
	return nil
}

// conversationBody is the body of a request that creates or changes a conversation.
type conversationBody struct {
	Items    []json.RawMessage `json:"items"`
	Metadata json.RawMessage   `json:"metadata"`
}

// readConversation reads such a body, which may be empty.
func readConversation(r *http.Request) (body conversationBody, err error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return body, err
	}
	if strings.TrimSpace(string(data)) == "" {
		return body, nil
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return body, api.Refuse(memberOf(err), "the body is not a JSON object of a conversation: %s", err)
	}
	if len(body.Items) > maxItems {
		return body, api.Refuse("items", "there are %d items: at most %d can be added at once", len(body.Items), maxItems)
	}
	return body, checkMetadata(body.Metadata)
}

// checkMetadata checks OpenAI's limits of metadata.
func checkMetadata(metadata json.RawMessage) error {
	if rawjson.IsNull(metadata) {
		return nil
	}
	var pairs map[string]string
	if err := json.Unmarshal(metadata, &pairs); err != nil {
		return api.Refuse("metadata", "metadata is not an object with strings")
	}
	if len(pairs) > 16 {
		return api.Refuse("metadata", "metadata has %d members, more than 16", len(pairs))
	}
	for key, value := range pairs {
		if len([]rune(key)) > 64 || len([]rune(value)) > 512 {
			return api.Refuse("metadata", "metadata: a key has at most 64 characters, a value 512")
		}
	}
	return nil
}

// conversation finds the conversation that a path names.
func (a *responsesAPI) conversation(r *http.Request) (continuo.Conversation, error) {
	conversation, err := a.engine.Conversations.Find(r.Context(), a.scope, r.PathValue("id"))
	if errors.Is(err, continuo.ErrNotFound) {
		err = &api.Problem{
			Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "conversation_not_found",
			Message: fmt.Sprintf("there is no conversation %s", api.Bounded(r.PathValue("id"))),
		}
	}
	return conversation, err
}

func (a *responsesAPI) createConversation(w http.ResponseWriter, r *http.Request) error {
	body, err := readConversation(r)
	if err != nil {
		return err
	}
	entries, err := a.entriesOf(r.Context(), body.Items)
	if err != nil {
		return err
	}
	created := continuo.Conversation{ProjectID: a.scope.ProjectID, UserID: a.scope.UserID, ActiveMode: continuo.ModeChat}
	if !rawjson.IsNull(body.Metadata) {
		created.Metadata = body.Metadata
	}
	if created, err = a.engine.Conversations.Create(r.Context(), a.scope, created); err != nil {
		return err
	}
	if len(entries) > 0 {
		if _, err := a.engine.Conversations.Append(r.Context(), created, entries, continuo.AppendOptions{}); err != nil {
			return errors.Join(err, a.engine.Conversations.Delete(r.Context(), created.ID))
		}
	}
	return writeConversation(w, created)
}

// entriesOf returns the entries of items that a client adds.
func (a *responsesAPI) entriesOf(ctx context.Context, items []json.RawMessage) ([]continuo.Entry, error) {
	resolved, err := a.resolve(ctx, items, echoItems)
	if err != nil {
		return nil, err
	}
	entries, _, err := responses.Entries(resolved, responses.Options{Provider: echoItems})
	if err != nil {
		return nil, api.Refuse("items", "%s", err)
	}
	return entries, nil
}

// echoItems is the provider under which what an entry cannot represent of an added item is kept.
const echoItems = "openai"

func (a *responsesAPI) showConversation(w http.ResponseWriter, r *http.Request) error {
	conversation, err := a.conversation(r)
	if err != nil {
		return err
	}
	return writeConversation(w, conversation)
}

func (a *responsesAPI) updateConversation(w http.ResponseWriter, r *http.Request) error {
	conversation, err := a.conversation(r)
	if err != nil {
		return err
	}
	body, err := readConversation(r)
	if err != nil {
		return err
	}
	if rawjson.IsNull(body.Metadata) {
		return api.Refuse("metadata", "metadata is missing")
	}
	if conversation, err = a.engine.Conversations.Change(r.Context(), a.scope, conversation.ID, continuo.ConversationChange{Metadata: body.Metadata}); err != nil {
		return err
	}
	return writeConversation(w, conversation)
}

func (a *responsesAPI) deleteConversation(w http.ResponseWriter, r *http.Request) error {
	conversation, err := a.conversation(r)
	if err != nil {
		return err
	}
	if err := a.engine.Conversations.Delete(r.Context(), conversation.ID); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": conversation.ID, "object": "conversation.deleted", "deleted": true})
	return nil
}

func (a *responsesAPI) createItems(w http.ResponseWriter, r *http.Request) error {
	conversation, err := a.conversation(r)
	if err != nil {
		return err
	}
	body, err := readConversation(r)
	if err != nil {
		return err
	}
	if len(body.Items) == 0 {
		return api.Refuse("items", "items is missing")
	}
	entries, err := a.entriesOf(r.Context(), body.Items)
	if err != nil {
		return err
	}
	stored, err := a.engine.Conversations.Append(r.Context(), conversation, entries, continuo.AppendOptions{})
	if err != nil {
		return err
	}
	var list itemList
	for i := range stored {
		list.add(&stored[i])
	}
	writeJSON(w, http.StatusOK, pageOf(list.items, len(list.items)))
	return nil
}

// itemPage is a page of a list of items.
type itemPage struct {
	Object  string            `json:"object"` // "list"
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

// pageOf is a page of the first items of a list.
func pageOf(items []item, limit int) itemPage {
	page := itemPage{Object: "list", Data: []json.RawMessage{}, HasMore: len(items) > limit}
	shown := items[:min(limit, len(items))]
	for _, item := range shown {
		page.Data = append(page.Data, item.raw)
	}
	if len(shown) > 0 {
		page.FirstID, page.LastID = &shown[0].id, &shown[len(shown)-1].id
	}
	return page
}

// writeItems writes the page of a list that a request asks for. Items are in the order of the log.
func writeItems(w http.ResponseWriter, r *http.Request, items []item) error {
	query := r.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > 100 {
			return api.Refuse("limit", "limit is not a number from 1 to 100")
		}
		limit = number
	}
	return writePage(w, items, limit, query.Get("order"), query.Get("after"))
}

// writePage writes a page of a list, in an order and after an item; "" for descending and for the first page.
func writePage(w http.ResponseWriter, items []item, limit int, order, after string) error {
	switch order {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return api.Refuse("order", "order is neither asc nor desc")
	}
	if after != "" {
		at := slices.IndexFunc(items, func(item item) bool { return item.id == after })
		if at < 0 {
			return api.Refuse("after", "there is no item %s in this list", api.Bounded(after))
		}
		items = items[at+1:]
	}
	writeJSON(w, http.StatusOK, pageOf(items, limit))
	return nil
}

func (a *responsesAPI) listItems(w http.ResponseWriter, r *http.Request) error {
	conversation, err := a.conversation(r)
	if err != nil {
		return err
	}
	items, err := a.itemsBetween(r.Context(), conversation, 1, conversation.LastSeq)
	if err != nil {
		return err
	}
	return writeItems(w, r, items)
}

// itemsBetween returns the items of the entries of a conversation from one seq to another, without deleted ones.
func (a *responsesAPI) itemsBetween(ctx context.Context, conversation continuo.Conversation, from, to int64) ([]item, error) {
	deleted, err := a.deletedItems(ctx, conversation)
	if err != nil || to < from {
		return nil, err
	}
	var list itemList
	for entry, err := range a.engine.Conversations.Read(ctx, conversation, continuo.Range{From: from, To: to}) {
		if err != nil {
			return nil, err
		}
		list.add(&entry)
	}
	return withoutEncrypted(undeleted(list.items, deleted)), nil
}

// itemsAt returns the items of one entry, with encrypted reasoning.
func (a *responsesAPI) itemsAt(ctx context.Context, conversation continuo.Conversation, seq int64, deleted map[string]bool) ([]item, error) {
	var list itemList
	count := 0
	for entry, err := range a.engine.Conversations.Read(ctx, conversation, continuo.Range{From: seq}) {
		if err != nil {
			return nil, err
		}
		if list.add(&entry); entry.Seq == seq {
			count = len(list.items)
		}
		if len(list.open) == 0 || entry.Seq > seq && entry.Role != continuo.Tool {
			break // the results of its calls follow an answer
		}
	}
	return undeleted(list.items[:count], deleted), nil
}

// undeleted returns items without those that were deleted.
func undeleted(items []item, deleted map[string]bool) (left []item) {
	for _, item := range items {
		if !deleted[item.id] {
			left = append(left, item)
		}
	}
	return left
}

func (a *responsesAPI) showItem(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.conversation(r); err != nil {
		return err
	}
	found, err := a.item(r.Context(), r.PathValue("item"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, withoutEncrypted([]item{found})[0].raw)
	return nil
}

// deleteItem hides an item by an appended entry; the item stays in the log.
func (a *responsesAPI) deleteItem(w http.ResponseWriter, r *http.Request) error {
	conversation, err := a.conversation(r)
	if err != nil {
		return err
	}
	found, err := a.item(r.Context(), r.PathValue("item"))
	if err != nil {
		return err
	}
	ref, _ := parseItemID(found.id)
	record := continuo.DeletionOf(ref.seq, found.id)
	if _, err := a.engine.Conversations.Append(r.Context(), conversation, []continuo.Entry{record}, continuo.AppendOptions{}); err != nil {
		return err
	}
	return writeConversation(w, conversation)
}

// deletedItems are the ids of the items of a conversation that were deleted.
func (a *responsesAPI) deletedItems(ctx context.Context, conversation continuo.Conversation) (map[string]bool, error) {
	deleted := map[string]bool{}
	for entry, err := range a.engine.Conversations.Read(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return nil, err
		}
		if _, id, ok := entry.Deletion(); ok {
			deleted[id] = true
		}
	}
	return deleted, nil
}
