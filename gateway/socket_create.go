package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// localResponse is the newest response of a connection, where it is not stored: only this connection can continue it.
type localResponse struct {
	id string
	// items are what a request that continues it has before its own input, and previous is the response that they follow;
	// "" for none. That one may be in the log without being stored.
	items    []json.RawMessage
	previous string
	inLog    bool // the server keeps the history that the response is part of
}

// end completes a response with its id and its items.
func (l *localResponse) end(id string, output []json.RawMessage) {
	l.id = id
	if l.inLog {
		l.items, l.previous = nil, id
		return
	}
	l.items = append(l.items, sendable(output)...)
}

// createMessage is the type of the only message that clients send.
const createMessage = "response.create"

// create answers a message of the client.
func (s *socket) create(ctx context.Context, message []byte) {
	out := &socketWriter{ctx: ctx, socket: s}
	continued, err := s.respond(out, message)
	if err != nil {
		s.fail(out, err)
	}
	out.finish()
	switch {
	case out.failed() && continued:
		s.local = nil // as at OpenAI: the client begins again with the whole input
	case out.failed():
	case out.kept != nil:
		s.local = out.kept
		s.local.end(out.response.ID, out.response.Output)
	default:
		s.local = nil // the log has it
	}
}

// fail sends an error in the form of the protocol.
func (s *socket) fail(out *socketWriter, err error) {
	s.api.writeFailure(out, s.request, clientResponses{}, err)
	out.finish()
}

// respond carries out a message. It reports whether the message continues the connection's own response.
func (s *socket) respond(out *socketWriter, message []byte) (continued bool, err error) {
	body, err := rawjson.ParseObject(message)
	if err != nil {
		return false, api.Refuse("", "the message is not a JSON object: %s", err)
	}
	if kind, _ := rawjson.String(body.Get("type")); kind != createMessage {
		return false, api.Refuse("type", "the type of a message is %s, not %q", createMessage, api.Bounded(kind))
	}
	if err := api.Allowed(s.request.Context()); err != nil {
		return false, err
	}
	generate := string(body.Get("generate")) != "false"
	body = body.Without("type", "generate", "background", "stream_options")
	body.Set("stream", json.RawMessage("true"))
	if previous, _ := rawjson.String(body.Get("previous_response_id")); s.local != nil && previous == s.local.id {
		continued = true
		if body, err = s.local.continued(body); err != nil {
			return true, err
		}
	}
	r := s.requestOf(out.ctx, body)
	q, err := s.api.read(r, false)
	if err != nil {
		return continued, err
	}
	q.unstored = continued
	if !q.echo.stored() || !generate {
		out.kept = &localResponse{items: q.Input, previous: q.PreviousResponseID}
	}
	if !generate {
		s.warmUp(out, q)
		return continued, nil
	}
	if out.kept != nil {
		out.kept.inLog = !keepsHistory(q)
	}
	return continued, s.api.respond(out, r, q)
}

// continued returns the body of a request that continues a response of the connection, with the items before its own.
func (l *localResponse) continued(body rawjson.Object) (rawjson.Object, error) {
	var input responses.Input
	if raw := body.Get("input"); !rawjson.IsNull(raw) {
		if err := json.Unmarshal(raw, &input); err != nil {
			return nil, api.Refuse("input", "%s", err)
		}
	}
	body = body.Without("previous_response_id")
	if l.previous != "" {
		body.Set("previous_response_id", rawjson.MustMarshal(l.previous))
	}
	body.Set("input", rawjson.MustMarshal(append(append([]json.RawMessage{}, l.items...), input...)))
	return body, nil
}

// sendable are the items of an output that the next request may have: reasoning that is not stored needs its encrypted
// content.
func sendable(output []json.RawMessage) []json.RawMessage {
	var kept []json.RawMessage
	for _, raw := range output {
		if parsed, err := responses.ParseItem(raw); err == nil && (parsed.Type != responses.TypeReasoning || parsed.EncryptedContent != nil) {
			kept = append(kept, raw)
		}
	}
	return kept
}

// requestOf is the request of a message, as if it had come by POST.
func (s *socket) requestOf(ctx context.Context, body rawjson.Object) *http.Request {
	r := s.request.Clone(continuo.WithMemory(ctx, nil)) // turns are bounded by the engine, as those of other requests
	r.Method, r.Body = http.MethodPost, io.NopCloser(bytes.NewReader(rawjson.MustMarshal(body)))
	for name := range r.Header {
		if strings.HasPrefix(name, "Sec-Websocket-") {
			r.Header.Del(name)
		}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	return r
}

// warmUp answers a request that generates nothing: its input comes before that of the request that continues it.
func (s *socket) warmUp(out *socketWriter, q *responseRequest) {
	now := seconds(s.api.engine.Conversations.Now())
	response := q.echo.response(strings.Replace(s.api.engine.Conversations.NewID("resp"), "resp_", "resp_warm_", 1), now)
	stream := newResponseStream(response, "", "", 1, false)
	begin := stream.send(responses.Event{Type: responses.EventCreated, Response: rawjson.MustMarshal(response)})
	response.Status, response.CompletedAt, response.Usage = responses.StatusCompleted, &now, &responses.Usage{}
	out.Header().Set("Content-Type", eventStream)
	_, _ = io.WriteString(out, begin+stream.send(responses.Event{Type: responses.EventCompleted, Response: rawjson.MustMarshal(response)}))
}

// errClientLeft ends the writing of a response.
var errClientLeft = errors.New("the client has left")

// errorMessage is an error as a message.
type errorMessage struct {
	Type           string            `json:"type"` // "error"
	SequenceNumber int               `json:"sequence_number"`
	Status         int               `json:"status"`
	Error          json.RawMessage   `json:"error"`
	Headers        map[string]string `json:"headers,omitempty"`
}

// newErrorMessage makes the message of an answer that is no stream of events.
func newErrorMessage(status int, header http.Header, body []byte) errorMessage {
	message := errorMessage{Type: responses.EventError, Status: status}
	if object, err := rawjson.ParseObject(body); err == nil && status >= http.StatusBadRequest {
		message.Error = object.Get("error")
	}
	if _, err := rawjson.ParseObject(message.Error); err != nil {
		if status < http.StatusBadRequest {
			message.Status = http.StatusBadGateway
		}
		text := fmt.Sprintf("the upstream answered with the status %d and without a stream of events", status)
		message.Error = rawjson.MustMarshal(openAIError(&api.Problem{Type: api.ServerError, Code: "upstream_failed", Message: text}).Error)
	}
	if wait := header.Get("Retry-After"); wait != "" {
		message.Headers = map[string]string{"retry-after": wait}
	}
	return message
}
