package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// routes adds the calls of stored chat completions to a mux.
func (c *completions) routes(mux *http.ServeMux) {
	for pattern, call := range map[string]func(w http.ResponseWriter, r *http.Request) error{
		"GET /v1/chat/completions":               c.listCompletions,
		"GET /v1/chat/completions/{id}":          c.showCompletion,
		"POST /v1/chat/completions/{id}":         c.updateCompletion,
		"DELETE /v1/chat/completions/{id}":       c.deleteCompletion,
		"GET /v1/chat/completions/{id}/messages": c.listMessages,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := call(w, r); err != nil {
				c.writeFailure(w, r, chatCompletions{}, err)
			}
		})
	}
}

// storedCompletion is a stored chat completion in OpenAI's form.
type storedCompletion struct {
	openaichat.Response
	Metadata json.RawMessage `json:"metadata"`
}

// completionOf makes the form of a stored completion; continuo.ErrNotFound.
func (c *completions) completionOf(ctx context.Context, record *completionRecord) (item, error) {
	_, answer, err := c.answerOf(ctx, record)
	if err != nil {
		return item{}, err
	}
	usage := continuo.Usage{}
	if answer.Round != nil && answer.Round.Usage != nil {
		usage = *answer.Round.Usage
	}
	shown := storedCompletion{chatResponse(record.ID, record.Created, record.Model, answer, usage), record.Metadata}
	if rawjson.IsNull(shown.Metadata) {
		shown.Metadata = json.RawMessage("{}")
	}
	return item{id: record.ID, raw: rawjson.MustMarshal(shown)}, nil
}

// noCompletion is the problem of a request for a completion that is not stored.
func noCompletion(id string) error {
	return &api.Problem{
		Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "not_found",
		Message: fmt.Sprintf("there is no stored chat completion %s: one is stored where its request has store: true", api.Bounded(id)),
	}
}

// completion finds the completion that a path names.
func (c *completions) completion(r *http.Request) (continuo.Conversation, *completionRecord, error) {
	index, record, err := c.find(r.Context(), r.PathValue("id"))
	if errors.Is(err, continuo.ErrNotFound) {
		err = noCompletion(r.PathValue("id"))
	}
	return index, record, err
}

func (c *completions) showCompletion(w http.ResponseWriter, r *http.Request) error {
	_, record, err := c.completion(r)
	if err != nil {
		return err
	}
	return c.writeCompletion(w, r, record)
}

func (c *completions) writeCompletion(w http.ResponseWriter, r *http.Request, record *completionRecord) error {
	shown, err := c.completionOf(r.Context(), record)
	if errors.Is(err, continuo.ErrNotFound) {
		return noCompletion(record.ID)
	}
	if err == nil {
		writeJSON(w, http.StatusOK, shown.raw)
	}
	return err
}

func (c *completions) updateCompletion(w http.ResponseWriter, r *http.Request) error {
	index, record, err := c.completion(r)
	if err != nil {
		return err
	}
	var body struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return api.Refuse("", "the body is not a JSON object: %s", err)
	}
	if body.Metadata == nil {
		return api.Refuse("metadata", "metadata is missing")
	}
	if err := checkMetadata(body.Metadata); err != nil {
		return err
	}
	record.Metadata = body.Metadata
	if err := c.change(r.Context(), index, record); err != nil {
		return err
	}
	return c.writeCompletion(w, r, record)
}

// deleteCompletion answers DELETE: the completion is not listed or retrieved any more. Its entries stay in the log.
func (c *completions) deleteCompletion(w http.ResponseWriter, r *http.Request) error {
	index, record, err := c.completion(r)
	if err != nil {
		return err
	}
	record.Deleted = true
	if err := c.change(r.Context(), index, record); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "chat.completion.deleted", "id": record.ID, "deleted": true})
	return nil
}

// completionQuery selects stored completions.
type completionQuery struct {
	after    string
	limit    int
	backward bool
	model    string // "": of any
	metadata map[string]string
}

// selects reports whether a completion has what the query asks for.
func (q completionQuery) selects(record *completionRecord) bool {
	if q.model != "" && q.model != record.Model && q.model != record.Asked {
		return false
	}
	var metadata map[string]string
	if len(q.metadata) > 0 && json.Unmarshal(record.Metadata, &metadata) != nil {
		return false
	}
	for key, value := range q.metadata {
		if found, ok := metadata[key]; !ok || found != value {
			return false
		}
	}
	return true
}

// readCompletionQuery reads the query of a list; OpenAI's lists of completions are in ascending order.
func readCompletionQuery(values url.Values) (q completionQuery, err error) {
	q = completionQuery{after: values.Get("after"), limit: 20, model: values.Get("model"), metadata: map[string]string{}}
	if text := values.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > 100 {
			return q, api.Refuse("limit", "limit is not a number from 1 to 100")
		}
	}
	switch values.Get("order") {
	case "", "asc":
	case "desc":
		q.backward = true
	default:
		return q, api.Refuse("order", "order is neither asc nor desc")
	}
	for name := range values {
		if key, ok := strings.CutPrefix(name, "metadata["); ok && strings.HasSuffix(key, "]") {
			q.metadata[strings.TrimSuffix(key, "]")] = values.Get(name)
		}
	}
	return q, nil
}

func (c *completions) listCompletions(w http.ResponseWriter, r *http.Request) error {
	q, err := readCompletionQuery(r.URL.Query())
	if err != nil {
		return err
	}
	limit, shown := q.limit, []item{}
	for len(shown) <= limit { // completions whose conversation was deleted are left out
		records, err := c.list(r.Context(), q)
		if errors.Is(err, continuo.ErrNotFound) {
			return api.Refuse("after", "there is no stored chat completion %s", api.Bounded(q.after))
		}
		if err != nil {
			return err
		}
		for _, record := range records {
			one, err := c.completionOf(r.Context(), record)
			if err == nil {
				shown = append(shown, one)
			} else if !errors.Is(err, continuo.ErrNotFound) {
				return err
			}
		}
		if len(records) <= q.limit {
			break
		}
		q.after = records[len(records)-1].ID
	}
	writeJSON(w, http.StatusOK, pageOf(shown, limit))
	return nil
}

// listMessages answers GET /v1/chat/completions/ID/messages with the messages of the request.
func (c *completions) listMessages(w http.ResponseWriter, r *http.Request) error {
	_, record, err := c.completion(r)
	if err != nil {
		return err
	}
	q, err := readCompletionQuery(r.URL.Query())
	if err != nil {
		return err
	}
	conversation, _, err := c.answerOf(r.Context(), record)
	if errors.Is(err, continuo.ErrNotFound) {
		return noCompletion(record.ID)
	}
	if err != nil {
		return err
	}
	sent, err := c.engine.Contexts.Request(r.Context(), conversation, record.Seq)
	if err != nil {
		return err
	}
	messages, err := chatMessages(sent.Round.Protocol, sent.Body)
	if err != nil {
		return err
	}
	var items []item
	for i, message := range messages {
		items = append(items, storedMessage(fmt.Sprintf("%s-%d", record.ID, i), message))
	}
	order := "asc"
	if q.backward {
		order = "desc"
	}
	return writePage(w, items, q.limit, order, q.after)
}

// storedMessage is a message of a stored completion: its content is a text, and parts are in a member of their own.
func storedMessage(id string, message json.RawMessage) item {
	object, err := rawjson.ParseObject(message)
	if err != nil {
		object = nil
	}
	content := object.Get("content")
	parts := json.RawMessage("null")
	if trimmed := bytes.TrimSpace(content); len(trimmed) > 0 && trimmed[0] == '[' {
		parts, content = content, json.RawMessage("null")
	}
	if content == nil {
		content = json.RawMessage("null")
	}
	object.Set("content", content)
	object.Set("content_parts", parts)
	return item{id: id, raw: rawjson.MustMarshal(append(rawjson.Object{text("id", id)}, object.Without("id")...))}
}

// chatMessages are the messages of the body of a request in any protocol, as chat completions have them.
func chatMessages(protocol string, body []byte) ([]json.RawMessage, error) {
	if protocol == model.ProtocolOpenAIChat {
		var sent struct{ Messages []json.RawMessage }
		err := json.Unmarshal(body, &sent)
		return sent.Messages, err
	}
	read, known := map[string]func([]byte, request.Options) (*request.Request, error){
		model.ProtocolAnthropic: request.ReadAnthropic, model.ProtocolGemini: request.ReadGemini, model.ProtocolResponses: request.ReadResponses,
	}[protocol]
	if !known {
		return nil, api.Refuse("", "the messages of a request of the protocol %s cannot be listed", protocol)
	}
	sent, err := read(body, request.Options{})
	if err != nil {
		return nil, err
	}
	var messages []window.Message
	for _, text := range sent.System {
		messages = append(messages, window.Message{Role: continuo.System, Content: continuo.Text(text)})
	}
	for i := range sent.Entries {
		entry := &sent.Entries[i]
		messages = append(messages, window.Message{Role: entry.Role, Content: entry.Content, ToolCalls: entry.ToolCalls, ToolCallID: entry.ToolCallID, Name: entry.Name, Entry: entry})
	}
	return render.OpenAIChat(messages, render.Options{})
}

// completionData are the JSON values of the bytes of an answer: of its events, or the whole.
func completionData(wire string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if strings.HasPrefix(strings.TrimSpace(wire), "{") {
			yield([]byte(wire))
			return
		}
		events := sse.NewReader(strings.NewReader(wire), 0)
		for event, err := events.Next(); err == nil && yield(event.Data); event, err = events.Next() {
		}
	}
}
