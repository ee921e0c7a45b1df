package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
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
	if err := askWindow(wanted, read, protocol); err != nil {
		return err
	}
	if wanted.Upstream.Model.Info().Protocol == protocol {
		own, omitted := read.Own()
		if wanted.CompactAt > 0 {
			omitted = slices.DeleteFunc(omitted, func(name string) bool { return name == contextManagement })
		}
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
	if wanted.CompactAt > 0 {
		asked.Omitted = slices.DeleteFunc(asked.Omitted, func(name string) bool { return name == contextManagement })
	}
	wanted.MaxOutputTokens, wanted.Temperature, wanted.ReasoningEffort = asked.MaxOutputTokens, asked.Temperature, asked.ReasoningEffort
	wanted.Options = &turn.ClientOptions{Sampling: &asked.Sampling, Names: asked.Names, Omitted: asked.Omitted}
	if asked.Answer != nil {
		wanted.Answer = &turn.AnswerSchema{Name: asked.Answer.Name, Schema: asked.Answer.Schema, Strict: asked.Answer.Strict}
	}
	return nil
}

// contextManagement is the member of a Responses request that says when its window moves.
const contextManagement = "context_management"

// askWindow sets what a Responses request asks of the window that the model is shown.
func askWindow(wanted *engine.ClientRequest, read *request.Request, protocol string) error {
	if protocol != model.ProtocolResponses {
		return nil
	}
	if raw := read.Fields.Get("truncation"); !rawjson.IsNull(raw) {
		truncation, _ := rawjson.String(raw)
		if truncation != "auto" && truncation != "disabled" {
			return api.Refuse("truncation", "truncation must be auto or disabled, not %s", api.Bounded(string(raw)))
		}
		wanted.Whole = truncation == "disabled"
	}
	raw := read.Fields.Get(contextManagement)
	if rawjson.IsNull(raw) {
		return nil
	}
	var edits []struct {
		Type      string `json:"type"`
		Threshold *int   `json:"compact_threshold"`
	}
	if err := json.Unmarshal(raw, &edits); err != nil {
		return api.Refuse(contextManagement, "context_management must be a list of objects with a type")
	}
	for _, edit := range edits {
		if edit.Threshold != nil && *edit.Threshold < minThreshold {
			return api.Refuse(contextManagement, "compact_threshold must be at least %d, not %d", minThreshold, *edit.Threshold)
		}
		if edit.Type == "compaction" && edit.Threshold != nil && len(edits) == 1 {
			wanted.CompactAt = *edit.Threshold
		}
	}
	return nil
}

// minThreshold is the smallest compact_threshold that the Responses API accepts.
const minThreshold = 1000
