package gateway

import (
	"context"
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
	"github.com/continuo-log/continuo/gateway/request"
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
	mux.HandleFunc("GET /v1/responses", a.handler(a.socket))
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

// create answers POST /v1/responses.
func (a *responsesAPI) create(w http.ResponseWriter, r *http.Request) error {
	q, err := a.read(r, false)
	if err != nil {
		return err
	}
	if q.repeat, err = repeatOf(r, q.body); err != nil {
		return err
	}
	return a.respond(w, r, q)
}

// respond creates the response that a request asks for.
func (a *responsesAPI) respond(w http.ResponseWriter, r *http.Request, q *responseRequest) error {
	if keepsHistory(q) {
		return a.answerBody(w, r, a.scope, clientResponses{}, q.body, q.repeat)
	}
	if record := a.options.Record; record == RecordOff || record == RecordStored && !q.echo.stored() {
		return api.Refuse("store", "the request is not recorded (gateway.record), so its history cannot be kept: send the whole input with store false, without conversation, previous_response_id and background")
	}
	provider := q.upstream.Model.Info().Provider
	entries, _, err := responses.Entries(q.items, responses.Options{Provider: provider})
	if err != nil {
		return api.Refuse("input", "%s", err)
	}
	chat, err := a.repeated(r.Context(), q)
	if err != nil {
		return err
	}
	if chat != nil {
		return a.writeResponse(w, r, q, chat, &upstreamAnswer{})
	}
	q.view = r.Header.Get(viewHeader)
	members, err := request.ReadResponsesMembers(q.body)
	if refused := new(request.Error); errors.As(err, &refused) {
		return api.Refuse(refused.Param, "%s", refused.Error())
	}
	if q.upstream.Model.Info().Protocol != model.ProtocolResponses {
		functions, err := clientTools(q.Tools, q.mcp)
		if err != nil {
			return err
		}
		if q.mcp != nil {
			if err := q.mcp.connect(r.Context(), a.options.MCP, functions); err != nil {
				return err
			}
			members.OtherTools = nil // they are MCP servers, or they would have been refused
		}
	}
	place := queued{queues: &a.queues}
	defer place.end()
	for range maxMatches {
		begun, answer, conversation, err := a.begin(r, q, entries, members)
		if moved := new(continuo.ConflictError); errors.As(err, &moved) { // the conversation has grown meanwhile
			if err := place.enter(r.Context(), conversation.ID); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, continuo.ErrExists) && conversation.ID == "" { // the same request has created it meanwhile
			if begun, err = a.repeated(r.Context(), q); begun == nil && err == nil {
				err = fmt.Errorf("begin a turn: %w", continuo.ErrBusy)
			}
		}
		if err != nil {
			return err
		}
		place.end()
		return a.writeResponse(w, r, q, begun, answer)
	}
	return fmt.Errorf("begin a turn: %w", continuo.ErrBusy)
}

// begin begins the turn of a response in its conversation, which it returns also where the turn did not begin.
func (a *responsesAPI) begin(r *http.Request, q *responseRequest, entries []continuo.Entry, members *request.Request) (*engine.Chat, *upstreamAnswer, continuo.Conversation, error) {
	conversation, view, err := a.place(r.Context(), q)
	if err != nil {
		return nil, nil, conversation, err
	}
	if len(entries) == 0 && conversation.LastSeq == 0 {
		return nil, nil, conversation, api.Refuse("input", "input is empty: send a text or a list of items")
	}
	answer := &upstreamAnswer{}
	wanted := engine.ClientRequest{
		Answered: answer.report, Conversation: conversation, Title: match.Title(entries), Entries: withEcho(entries, q.echo), Mode: continuo.ModeChat, Model: q.Model, Upstream: &q.upstream, View: view, Tools: members.Tools,
		MaxOutputTokens: q.MaxOutputTokens, Temperature: q.Temperature, Detached: q.Background, Repeat: q.repeat, NoMemory: api.LeavesOut(r.Header.Get("X-Continuo-Memory")),
	}
	if err := ask(&wanted, members, model.ProtocolResponses, r.Header); err != nil {
		return nil, nil, conversation, err
	}
	if err := q.mcp.choose(&wanted); err != nil {
		return nil, nil, conversation, err
	}
	if q.mcp != nil {
		if err := a.serveMCP(r.Context(), q, conversation, &wanted); err != nil {
			return nil, nil, conversation, err
		}
	}
	if q.Instructions != "" {
		wanted.System = []string{q.Instructions}
	}
	if wanted.Prefixes, err = a.keptPrefixes(r.Context(), conversation, wanted.System); err != nil {
		return nil, nil, conversation, err
	}
	chat, err := a.engine.Turns.Request(r.Context(), wanted)
	return chat, answer, conversation, err
}

// repeated follows the turn that an earlier try of a request has begun; nil for none.
func (a *responsesAPI) repeated(ctx context.Context, q *responseRequest) (*engine.Chat, error) {
	if q.repeat.Key == "" && !q.repeat.Again {
		return nil, nil
	}
	var in []continuo.Conversation
	id := q.named
	if q.previous != nil {
		id = q.previous.conversation
	}
	if id != "" {
		conversation, err := a.engine.Conversations.Find(ctx, a.scope, id)
		if err != nil {
			return nil, nil // place says why
		}
		in = append(in, conversation)
	}
	return a.engine.Turns.Repeated(ctx, a.scope, q.repeat, in...)
}

// writeResponse answers with the response that a turn makes.
func (a *responsesAPI) writeResponse(w http.ResponseWriter, r *http.Request, q *responseRequest, chat *engine.Chat, answer *upstreamAnswer) error {
	ref := responseRef{chat.Conversation.ID, chat.TurnID, chat.Conversation.LastSeq + 1}
	response := q.echo.response(ref.String(), createdAt(chat.TurnID))
	stream := newResponseStream(response, ref.conversation, q.upstream.Model.Info().Provider, ref.first, slices.Contains(q.Include, responses.IncludeEncryptedReasoning))
	if q.mcp != nil {
		if err := a.showMCP(r.Context(), q, ref, stream); err != nil {
			return err
		}
	}
	w.Header().Set(conversationHeader, ref.conversation)
	w.Header().Set("X-Continuo-Turn", chat.TurnID)
	if q.Background && !q.Stream {
		go drain(chat)
		response.Status = responses.StatusQueued
		writeJSON(w, http.StatusOK, response)
		return nil
	}
	writer := &responseWriter{out: w, stream: stream, streamed: q.Stream, answer: answer, waits: !q.Background}
	return writer.write(chat.Events)
}

// drain reads the events of a turn that nobody follows: a turn is read once.
func drain(chat *engine.Chat) {
	for range chat.Events {
	}
}

// responseWriter writes a response as its turn proceeds.
type responseWriter struct {
	out      http.ResponseWriter
	stream   *responseStream
	streamed bool // as the events from a number on; otherwise whole at its end
	from     int
	answer   *upstreamAnswer
	waits    bool // the stream begins with the first piece of the answer, so that one that fails before has the status of an error

	begun bool
	head  string // the events before the first piece
}

// write writes the response to the end of its turn. It returns an error only if nothing was written.
func (y *responseWriter) write(events func(func(turn.Event, error) bool)) error {
	for event, err := range events {
		if err == nil && event.Kind == turn.Failed && !y.begun && (!y.streamed || y.waits) {
			err = modelFailed(event.Entry.Error)
		}
		if err != nil && !y.begun {
			y.answer.passLimits(y.out.Header())
			return err
		}
		if err != nil {
			_, _ = io.WriteString(y.out, clientResponses{}.errorEventAt(api.ProblemOf(err), y.stream.number))
			return nil
		}
		nameOmitted(y.out.Header(), &event)
		if !y.send(&event) {
			return nil
		}
	}
	if !y.streamed {
		y.answer.passLimits(y.out.Header())
		writeJSON(y.out, http.StatusOK, y.stream.response)
	}
	return nil
}

// send sends what an event adds to the stream. It reports false when the client has left.
func (y *responseWriter) send(event *turn.Event) bool {
	before := y.stream.number
	wire := y.stream.event(event)
	if before < y.from {
		wire = skipEvents(wire, min(y.from, y.stream.number)-before)
	}
	switch {
	case !y.streamed:
		return true
	case !y.begun && event.Kind == turn.Started: // the header names what the request lacks, which is not known yet
		y.head += wire
		return true
	case wire == "" && (y.waits || y.head == "" || y.begun):
		return true
	case !y.begun:
		y.begun = true
		y.answer.passLimits(y.out.Header())
		y.out.Header().Set("Content-Type", eventStream)
		wire = y.head + wire
	}
	_, err := io.WriteString(y.out, wire)
	return err == nil && http.NewResponseController(y.out).Flush() == nil
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
	response := found.echo.response(found.ref.String(), createdAt(found.turn.ID))
	upstream, _ := a.engine.Catalog.Served(found.turn.Model, model.ProtocolResponses)
	provider := ""
	if upstream.Model != nil {
		provider = upstream.Model.Info().Provider
	}
	stream := newResponseStream(response, found.conversation.ID, provider, found.ref.first, encrypted)
	stream.mcp, stream.first = found.echo.mcpNames(), firstMCPItems(found.ref.conversation, found.ref.first, found.echo.MCP, found.entries)
	writer := &responseWriter{out: w, stream: stream, streamed: true, from: from, answer: &upstreamAnswer{}}
	return writer.write(a.engine.Turns.Follow(r.Context(), found.turn, 0))
}

// delete answers DELETE /v1/responses/ID: the response is not retrieved or continued any more. Its entries stay in the
// conversation.
func (a *responsesAPI) delete(w http.ResponseWriter, r *http.Request) error {
	found, err := a.findByPath(r)
	if err != nil {
		return err
	}
	if _, err := a.engine.Conversations.AdvanceMark(r.Context(), found.conversation.ID, deletedMark(found.turn.ID), continuo.Mark{Seq: found.last}); err != nil {
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
	var list itemList
	for i := range found.entries {
		entry := &found.entries[i]
		if entry.Role == continuo.Assistant && (entry.Round != nil || entry.Error != nil) {
			break
		}
		list.add(entry)
	}
	return writeItems(w, r, list.items)
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
	tools, err := clientTools(q.Tools, q.mcp)
	if err != nil {
		return err
	}
	if q.mcp != nil {
		if err := q.mcp.connect(r.Context(), a.options.MCP, tools); err != nil {
			return err
		}
		served, asked := q.mcp.set()
		tools = slices.Concat(served.Specs(), tools, asked)
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
