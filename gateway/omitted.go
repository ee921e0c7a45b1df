package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/turn"
)

// omittedHeader names the members of a request that the request to the model does not have, because it was built from the
// log and not forwarded.
const omittedHeader = "X-Continuo-Omitted"

// nameOmitted sets the header that names what the request of an event lacks.
func nameOmitted(header http.Header, event *turn.Event) {
	if event.Kind == turn.Planned && event.Round != nil && len(event.Round.Omitted) > 0 {
		header.Set(omittedHeader, strings.Join(event.Round.Omitted, ", "))
	}
}

// ask sets what a request asks of the answer, for a request to the model that is built from the log. In the client's own
// protocol, that request has its members as they came.
func ask(wanted *engine.ClientRequest, read *request.Request, protocol string, header http.Header) error {
	if wanted.Upstream.Model.Info().Protocol == protocol {
		own, omitted := read.Own()
		slices.Sort(omitted)
		wanted.Options = &turn.ClientOptions{Omitted: omitted, Headers: builtHeaders(header, wanted.Upstream.ForwardCredentials)}
		if own != nil {
			wanted.Options.Own = &continuo.OwnMembers{Protocol: protocol, Members: own}
		}
		return nil
	}
	asked, err := read.Asked()
	if refused := new(request.Error); errors.As(err, &refused) {
		return api.Refuse(refused.Param, "%s", refused.Error())
	}
	if err != nil {
		return err
	}
	wanted.MaxOutputTokens, wanted.Temperature, wanted.ReasoningEffort = asked.MaxOutputTokens, asked.Temperature, asked.ReasoningEffort
	wanted.Options = &turn.ClientOptions{Sampling: &asked.Sampling, Names: asked.Names, Omitted: asked.Omitted}
	if asked.Answer != nil {
		wanted.Answer = &turn.AnswerSchema{Name: asked.Answer.Name, Schema: asked.Answer.Schema, Strict: asked.Answer.Strict}
	}
	return nil
}
