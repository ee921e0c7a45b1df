package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/model"
)

// messages is POST /v1/messages.
type messages struct{}

func (messages) model(body []byte) string { return modelInBody(body) }

func (messages) path(string) string { return "" }

func (messages) protocol() string { return model.ProtocolAnthropic }

func (messages) read(body []byte, o request.Options) (*request.Request, error) {
	return request.ReadAnthropic(body, o)
}

func (messages) ends(wire string) bool {
	at := strings.LastIndex(wire, "event: ")
	return strings.HasPrefix(wire[max(at, 0):], "event: "+anthropic.EventMessageStop) || strings.HasPrefix(wire[max(at, 0):], "event: "+anthropic.EventError)
}

func (messages) writeError(w http.ResponseWriter, p *api.Problem) {
	writeProblem(w, p, anthropicError(p))
}

func (messages) lastEvent() string {
	return anthropicEvent(anthropic.Event{Type: anthropic.EventMessageStop})
}

func (messages) errorEvent(p *api.Problem, _ string) string {
	return fmt.Sprintf("event: error\ndata: %s\n\n", rawjson.MustMarshal(anthropicError(p)))
}

// anthropicErrorBody is the form of an error of Anthropic.
type anthropicErrorBody struct {
	Type  string `json:"type"` // "error"
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// anthropicTypes are Anthropic's types of errors by the status.
var anthropicTypes = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusGatewayTimeout: "timeout_error", http.StatusServiceUnavailable: "overloaded_error",
}

// tooLong is how Anthropic's errors say that a request is larger than the model's window; agents look for it.
const tooLong = "prompt is too long"

func anthropicError(p *api.Problem) anthropicErrorBody {
	body := anthropicErrorBody{Type: "error"}
	body.Error.Type, body.Error.Message = anthropicTypes[p.Status], p.Message
	switch {
	case p.Code == "context_overflow":
		body.Error.Type = "invalid_request_error"
		if !strings.Contains(p.Message, tooLong) {
			body.Error.Message = tooLong + ": " + p.Message
		}
	case body.Error.Type == "" && p.Status < 500:
		body.Error.Type = "invalid_request_error"
	case body.Error.Type == "":
		body.Error.Type = "api_error"
	}
	return body
}
