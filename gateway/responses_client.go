package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// clientResponses is POST /v1/responses for a client that keeps its history itself, as Codex does: nothing of the
// response can be retrieved or continued by its id, so the request is forwarded and matched like those of other endpoints.
type clientResponses struct{}

// keepsHistory reports whether the client of a request keeps its history itself.
func keepsHistory(q *responseRequest) bool {
	return !q.echo.stored() && !q.Background && q.named == "" && q.previous == nil && q.from == nil && q.mcp == nil
}

func (clientResponses) model(body []byte) string { return modelInBody(body) }

func (clientResponses) path(string) string { return "" }

func (clientResponses) protocol() string { return model.ProtocolResponses }

func (clientResponses) read(body []byte, o request.Options) (*request.Request, error) {
	return request.ReadResponses(body, o)
}

func (clientResponses) ends(wire string) bool {
	at := strings.LastIndex(wire, "event: ")
	name, _, _ := strings.Cut(strings.TrimPrefix(wire[max(at, 0):], "event: "), "\n")
	return slices.Contains([]string{responses.EventCompleted, responses.EventIncomplete, responses.EventFailed, responses.EventError}, strings.TrimSpace(name)) ||
		strings.HasSuffix(strings.TrimRight(wire, "\r\n"), "data: "+responses.Done)
}

func (clientResponses) writeError(w http.ResponseWriter, p *api.Problem) {
	chatCompletions{}.writeError(w, p)
}

// errorEvent has the members of the published type, and the object in which OpenAI's clients look for an error.
func (e clientResponses) errorEvent(p *api.Problem, before string) string {
	return e.errorEventAt(p, nextNumber(before))
}

// errorEventAt is errorEvent with its number.
func (clientResponses) errorEventAt(p *api.Problem, number int) string {
	inner := openAIError(p).Error
	data := rawjson.MustMarshal(map[string]any{
		"type": responses.EventError, "sequence_number": number, "code": inner.Code, "message": inner.Message, "param": inner.Param, "error": inner,
	})
	return fmt.Sprintf("event: %s\ndata: %s\n\n", responses.EventError, data)
}

// nextNumber is the number of the event that follows some events of a stream.
func nextNumber(before string) int {
	const member = `"sequence_number":`
	at := strings.LastIndex(before, member)
	if at < 0 {
		return 0
	}
	digits := strings.TrimLeft(before[at+len(member):], " ")
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
	number, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return number + 1
}

func (clientResponses) lastEvent() string { return "" }

func (clientResponses) encoder(asked *askedRequest) encoder { return &responsesEncoder{asked: asked} }

// responsesEncoder writes an answer as a response.
type responsesEncoder struct {
	asked  *askedRequest
	stream *responseStream
}

func (e *responsesEncoder) streams() bool { return e.asked.Stream }

func (e *responsesEncoder) begin(chat *engine.Chat) string {
	var echo responseEcho
	_ = json.Unmarshal(rawjson.MustMarshal(e.asked.Fields.Without("conversation", "gateway_mcp")), &echo) // what cannot be read is left out
	echo.Tools = withoutSecrets(echo.Tools)
	first := chat.Conversation.LastSeq + 1
	ref := responseRef{chat.Conversation.ID, chat.TurnID, first}
	encrypted := strings.Contains(string(e.asked.Fields.Get("include")), responses.IncludeEncryptedReasoning)
	e.stream = newResponseStream(echo.response(ref.String(), seconds(time.Now())), ref.conversation, e.asked.upstream.Model.Info().Provider, first, encrypted)
	return ""
}

func (e *responsesEncoder) event(event *turn.Event) string { return e.stream.event(event) }

func (e *responsesEncoder) whole(*engine.Chat, *turn.Event) any { return e.stream.response }
