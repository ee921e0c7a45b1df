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

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway/match"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// responsesAPI serves OpenAI's Responses API for a caller.
type responsesAPI struct {
	*Gateway
	scope continuo.Scope
}

// routes adds the API's calls to a mux.
func (a *responsesAPI) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/responses", a.handler(a.create))
	mux.HandleFunc("GET /v1/responses/{id}", a.handler(a.retrieve))
	mux.HandleFunc("DELETE /v1/responses/{id}", a.handler(a.delete))
	mux.HandleFunc("POST /v1/responses/{id}/cancel", a.handler(a.cancel))
	mux.HandleFunc("GET /v1/responses/{id}/input_items", a.handler(a.inputItems))
	mux.HandleFunc("POST /v1/responses/input_tokens", a.handler(a.inputTokens))
	mux.HandleFunc("POST /v1/responses/compact", a.handler(a.compact))
}

// handler writes the error of a call in OpenAI's form.
func (a *responsesAPI) handler(call func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := call(w, r); err != nil {
			a.writeFailure(w, r, chatCompletions{}, err)
		}
	}
}

// responseRequest is the body of a request for a response.
type responseRequest struct {
	responses.Request
	body     []byte
	echo     *responseEcho
	items    []json.RawMessage // the input, with references replaced by what they name
	previous *responseRef      // nil for none
	from     *compacted        // what the input continues; nil for none
	named    string            // the id of the conversation; "" for none
	upstream engine.Upstream
}

// read reads a request. The model may be missing where lenient says so.
func (a *responsesAPI) read(r *http.Request, lenient bool) (*responseRequest, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	read := &responseRequest{body: body, echo: &responseEcho{}}
	if err := json.Unmarshal(body, &read.Request); err != nil {
		return nil, api.Refuse(memberOf(err), "the body is not a request for a response: %s", err)
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
	read.items, err = a.resolve(r.Context(), read.items)
	return read, err
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

// resolve replaces the references in an input by the items that they name.
func (a *responsesAPI) resolve(ctx context.Context, input []json.RawMessage) ([]json.RawMessage, error) {
	items := slices.Clone(input)
	for i, raw := range items {
		parsed, err := responses.ParseItem(raw)
		switch {
		case err != nil:
			return nil, api.Refuse(fmt.Sprintf("input[%d]", i), "%s", err)
		case parsed.Type != responses.TypeItemReference:
			continue
		}
		found, err := a.item(ctx, parsed.ID)
		if err != nil {
			return nil, err
		}
		items[i] = found.raw
	}
	return items, nil
}

// item finds an item by its id.
func (a *responsesAPI) item(ctx context.Context, id string) (item, error) {
	missing := &api.Problem{Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "item_not_found", Message: fmt.Sprintf("there is no item %s", api.Bounded(id))}
	ref, ok := parseItemID(id)
	if !ok {
		return item{}, missing
	}
	conversation, err := a.log.Find(ctx, a.scope, ref.conversation)
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

// providerOf is the provider of an answer; "" for other entries.
func providerOf(entry *continuo.Entry) string {
	if entry.Round == nil {
		return ""
	}
	return entry.Round.Provider
}

// place finds the conversation of a request and the view of it that the model is shown; "" for everything.
func (a *responsesAPI) place(ctx context.Context, q *responseRequest) (conversation continuo.Conversation, view string, err error) {
	view = "continuity"
	if len(q.Tools) > 0 {
		view = "codex"
	}
	switch {
	case q.named != "":
		conversation, err = a.log.Find(ctx, a.scope, q.named)
		if errors.Is(err, continuo.ErrNotFound) {
			err = &api.Problem{
				Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "conversation_not_found", Param: "conversation",
				Message: fmt.Sprintf("there is no conversation %s", api.Bounded(q.named)),
			}
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
	return conversation, "", nil
}

// continued returns the conversation that a request with a previous response adds to: that of the response, or a fork
// where it has more.
func (a *responsesAPI) continued(ctx context.Context, q *responseRequest) (continuo.Conversation, error) {
	found, err := a.find(ctx, *q.previous)
	if errors.Is(err, continuo.ErrNotFound) {
		return continuo.Conversation{}, noPrevious(q.PreviousResponseID)
	}
	if err != nil {
		return continuo.Conversation{}, err
	}
	if found.turn.State == continuo.TurnRunning {
		return found.conversation, nil
	}
	return a.continuedAt(ctx, found.conversation, found.last)
}

// continuedAt returns a conversation that ends at a seq: the conversation itself, or a fork of it.
func (a *responsesAPI) continuedAt(ctx context.Context, conversation continuo.Conversation, seq int64) (continuo.Conversation, error) {
	if conversation.LastSeq == seq {
		return conversation, nil
	}
	return a.log.Fork(ctx, conversation.ID, seq, continuo.Conversation{
		ProjectID: conversation.ProjectID, UserID: conversation.UserID, Title: conversation.Title, ActiveMode: conversation.ActiveMode,
	})
}

// create answers POST /v1/responses.
func (a *responsesAPI) create(w http.ResponseWriter, r *http.Request) error {
	q, err := a.read(r, false)
	if err != nil {
		return err
	}
	if keepsHistory(q) {
		return a.answerBody(w, r, a.scope, clientResponses{}, q.body)
	}
	provider := q.upstream.Model.Info().Provider
	entries, _, err := responses.Entries(q.items, responses.Options{Provider: provider})
	if err != nil {
		return api.Refuse("input", "%s", err)
	}
	conversation, view, err := a.place(r.Context(), q)
	if err != nil {
		return err
	}
	if len(entries) == 0 && conversation.LastSeq == 0 {
		return api.Refuse("input", "input is empty: send a text or a list of items")
	}
	tools, err := clientTools(q.Tools)
	if err != nil {
		return err
	}
	wanted := engine.ClientRequest{
		Conversation: conversation, Title: match.Title(entries), Entries: withEcho(entries, q.echo), Mode: continuo.ModeChat, Model: q.Model, Upstream: &q.upstream, View: view, Tools: tools,
		MaxOutputTokens: q.MaxOutputTokens, Temperature: q.Temperature, Detached: q.Background, Answer: answerSchema(q.Text),
	}
	if q.Instructions != "" {
		wanted.System = []string{q.Instructions}
	}
	chat, err := a.engine.Turns.Request(r.Context(), wanted)
	if err != nil {
		return err
	}
	ref := responseRef{chat.Conversation.ID, chat.TurnID, chat.Conversation.LastSeq + 1}
	response := q.echo.response(ref.String(), seconds(a.log.Now()))
	stream := newResponseStream(response, ref.conversation, provider, ref.first, slices.Contains(q.Include, responses.IncludeEncryptedReasoning))
	w.Header().Set(conversationHeader, ref.conversation)
	w.Header().Set("X-Continuo-Turn", chat.TurnID)
	if q.Background && !q.Stream {
		go drain(chat)
		response.Status = responses.StatusQueued
		writeJSON(w, http.StatusOK, response)
		return nil
	}
	return a.write(w, chat.Events, stream, q.Stream, 0)
}

// drain reads the events of a turn that nobody follows: a turn is read once.
func drain(chat *engine.Chat) {
	for range chat.Events {
	}
}

// write writes a response as its turn proceeds: as a stream of the events from a number on, or whole at its end.
func (a *responsesAPI) write(w http.ResponseWriter, events func(func(turn.Event, error) bool), stream *responseStream, streamed bool, from int) error {
	begun := false
	for event, err := range events {
		if err == nil && event.Kind == turn.Failed && !streamed {
			err = api.ModelFailed(event.Entry.Error) // as at OpenAI, where it is not streamed
		}
		if err != nil && !begun {
			return err
		}
		if err != nil {
			_, _ = io.WriteString(w, chatCompletions{}.errorEvent(api.ProblemOf(err)))
			return nil
		}
		before := stream.number
		wire := stream.event(&event)
		if before < from {
			wire = skipEvents(wire, min(from, stream.number)-before)
		}
		if !streamed || wire == "" {
			continue
		}
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "text/event-stream")
		}
		if _, err := io.WriteString(w, wire); err != nil || http.NewResponseController(w).Flush() != nil {
			return nil // the client has left
		}
	}
	if !streamed {
		writeJSON(w, http.StatusOK, stream.response)
	}
	return nil
}

// skipEvents removes the first events of a piece of a stream.
func skipEvents(wire string, count int) string {
	for range count {
		_, rest, found := cutEvent(wire)
		if !found {
			return ""
		}
		wire = rest
	}
	return wire
}

// foundResponse is a response in the log.
type foundResponse struct {
	ref          responseRef
	conversation continuo.Conversation
	turn         continuo.Turn
	echo         *responseEcho
	entries      []continuo.Entry // of the turn
	last         int64            // seq of the newest of them
}

// find finds a stored response; continuo.ErrNotFound.
func (a *responsesAPI) find(ctx context.Context, ref responseRef) (*foundResponse, error) {
	found := &foundResponse{ref: ref, last: ref.first - 1}
	var err error
	if found.conversation, err = a.log.Find(ctx, a.scope, ref.conversation); err != nil {
		return nil, err
	}
	if _, err := a.log.Mark(ctx, ref.conversation, deletedMark(ref.turn)); !errors.Is(err, continuo.ErrNotFound) {
		return nil, errors.Join(err, continuo.ErrNotFound)
	}
	if found.turn, err = a.engine.Turns.Get(ctx, found.conversation, ref.turn); err != nil {
		return nil, err
	}
	for entry, err := range a.log.Read(ctx, found.conversation, continuo.Range{From: ref.first}) {
		if err != nil {
			return nil, err
		}
		if entry.TurnID != ref.turn {
			break
		}
		if echo, ok := echoOf(&entry); ok && found.echo == nil {
			found.echo = echo
		}
		found.entries, found.last = append(found.entries, entry), entry.Seq
	}
	if found.echo == nil || !found.echo.stored() {
		return nil, continuo.ErrNotFound
	}
	return found, nil
}

// deletedMark is the mark of a turn whose response a client deleted.
func deletedMark(turnID string) string { return "response deleted " + turnID }

// findByPath finds the response that a request names.
func (a *responsesAPI) findByPath(r *http.Request) (*foundResponse, error) {
	id := r.PathValue("id")
	missing := &api.Problem{Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "response_not_found", Message: fmt.Sprintf("there is no response %s", api.Bounded(id))}
	ref, ok := parseResponseID(id)
	if !ok {
		return nil, missing
	}
	found, err := a.find(r.Context(), ref)
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrBadRange) {
		return nil, missing
	}
	return found, err
}

// response is a stored response as it is now.
func (f *foundResponse) response(encrypted bool) *wireResponse {
	response := f.echo.response(f.ref.String(), seconds(f.turn.StartedAt))
	var answer *continuo.Entry
	for i := range f.entries {
		entry := &f.entries[i]
		if entry.Role != continuo.Assistant || entry.Round == nil && entry.Error == nil {
			continue
		}
		answer = entry
		items := answerItems(entry, providerOf(entry))
		if !encrypted {
			items = withoutEncrypted(items)
		}
		if entry.Error != nil && entry.Content.IsEmpty() && entry.Reasoning == nil && len(entry.ToolCalls) == 0 {
			continue
		}
		for _, item := range items {
			response.Output = append(response.Output, item.raw)
		}
	}
	if f.turn.State == continuo.TurnRunning {
		return response
	}
	at := f.turn.EndedAt
	if answer != nil {
		at = answer.CreatedAt
	}
	response.end(answer, f.turn.Usage, seconds(at))
	return response
}

// retrieve answers GET /v1/responses/ID, also as a stream from an event on.
func (a *responsesAPI) retrieve(w http.ResponseWriter, r *http.Request) error {
	found, err := a.findByPath(r)
	if err != nil {
		return err
	}
	encrypted := slices.Contains(append(r.URL.Query()["include"], r.URL.Query()["include[]"]...), responses.IncludeEncryptedReasoning)
	if streamed, _ := strconv.ParseBool(r.URL.Query().Get("stream")); !streamed {
		writeJSON(w, http.StatusOK, found.response(encrypted))
		return nil
	}
	from := 0
	if after := r.URL.Query().Get("starting_after"); after != "" {
		number, err := strconv.Atoi(after)
		if err != nil || number < 0 {
			return api.Refuse("starting_after", "starting_after is not a sequence number")
		}
		from = number + 1
	}
	response := found.echo.response(found.ref.String(), seconds(found.turn.StartedAt))
	upstream, _ := a.engine.Catalog.Served(found.turn.Model, model.ProtocolResponses)
	provider := ""
	if upstream.Model != nil {
		provider = upstream.Model.Info().Provider
	}
	stream := newResponseStream(response, found.conversation.ID, provider, found.ref.first, encrypted)
	return a.write(w, a.engine.Turns.Follow(r.Context(), found.turn, 0), stream, true, from)
}

// delete answers DELETE /v1/responses/ID: the response is not retrieved or continued any more. Its entries stay in the
// conversation.
func (a *responsesAPI) delete(w http.ResponseWriter, r *http.Request) error {
	found, err := a.findByPath(r)
	if err != nil {
		return err
	}
	if _, err := a.log.AdvanceMark(r.Context(), found.conversation.ID, deletedMark(found.turn.ID), continuo.Mark{Seq: found.last}); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": found.ref.String(), "object": "response", "deleted": true})
	return nil
}

// cancel answers POST /v1/responses/ID/cancel. It may be called again.
func (a *responsesAPI) cancel(w http.ResponseWriter, r *http.Request) error {
	found, err := a.findByPath(r)
	if err != nil {
		return err
	}
	if !found.echo.Background {
		return api.Refuse("", "only a response with background: true can be cancelled")
	}
	if err := a.engine.Turns.Cancel(r.Context(), found.turn); err == nil {
		for _, err := range a.engine.Turns.Follow(r.Context(), found.turn, 0) { // until it has ended
			if err != nil {
				return err
			}
		}
	} else if !errors.Is(err, continuo.ErrNotRunning) {
		return err
	}
	if found, err = a.findByPath(r); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, found.response(false))
	return nil
}

// inputItems answers GET /v1/responses/ID/input_items.
func (a *responsesAPI) inputItems(w http.ResponseWriter, r *http.Request) error {
	found, err := a.findByPath(r)
	if err != nil {
		return err
	}
	var items []item
	calls := map[string]continuo.ToolCall{}
	for i := range found.entries {
		entry := &found.entries[i]
		if entry.Role == continuo.Assistant && (entry.Round != nil || entry.Error != nil) {
			break
		}
		for _, call := range entry.ToolCalls {
			calls[call.ID] = call
		}
		items = append(items, itemsOf(entry, calls[entry.ToolCallID], "")...)
	}
	return writeItems(w, r, items)
}

// inputTokens answers POST /v1/responses/input_tokens: the size of the request that the same body would make.
func (a *responsesAPI) inputTokens(w http.ResponseWriter, r *http.Request) error {
	q, err := a.read(r, true)
	if err != nil {
		return err
	}
	entries, _, err := responses.Entries(q.items, responses.Options{})
	if err != nil {
		return api.Refuse("input", "%s", err)
	}
	conversation, view, err := a.place(r.Context(), q)
	if err != nil {
		return err
	}
	tools, err := clientTools(q.Tools)
	if err != nil {
		return err
	}
	asked := engine.ClientRequest{Conversation: conversation, Entries: entries, Model: q.Model, Upstream: q.served(), View: view, Tools: tools, MaxOutputTokens: q.MaxOutputTokens}
	if q.Instructions != "" {
		asked.System = []string{q.Instructions}
	}
	size, err := a.engine.Turns.CountTokens(r.Context(), asked)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": size})
	return nil
}

// clientTools are the functions among the tools of a request.
func clientTools(raws []json.RawMessage) ([]continuo.ToolSpec, error) {
	var specs []continuo.ToolSpec
	for i, raw := range raws {
		var tool responses.Tool
		if err := json.Unmarshal(raw, &tool); err != nil {
			return nil, api.Refuse(fmt.Sprintf("tools[%d]", i), "%s", err)
		}
		if tool.Type != "function" {
			return nil, api.Refuse(fmt.Sprintf("tools[%d].type", i), "tools of type %q are not offered to this model: only functions are", api.Bounded(tool.Type))
		}
		specs = append(specs, continuo.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	return specs, nil
}

// answerSchema is the schema of the answer that a request asks for; nil for none.
func answerSchema(text *responses.Text) *turn.AnswerSchema {
	if text == nil || text.Format == nil || text.Format.Type != "json_schema" {
		return nil
	}
	return &turn.AnswerSchema{Name: text.Format.Name, Schema: text.Format.Schema}
}
