package gateway

import (
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/model"
)

// Record says which requests of clients are in the log.
type Record string

// The choices. RecordStored: all but those with store false.
const (
	RecordAll    Record = "all"
	RecordStored Record = "stored"
	RecordOff    Record = "off"
)

// records reports whether a request is recorded.
func (g *Gateway) records(read *request.Request) bool {
	switch g.options.Record {
	case RecordOff:
		return false
	case RecordStored:
		return string(read.Fields.Get("store")) != "false"
	}
	return true
}

// pass forwards a request that is not recorded.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, scope continuo.Scope, e endpoint, asked *askedRequest, body []byte) error {
	info := asked.upstream.Model.Info()
	if r.Header.Get(conversationHeader) != "" {
		return api.Refuse(conversationHeader, "the request is not recorded (gateway.record), so it belongs to no conversation: leave the header out")
	}
	if !info.Forwards || info.Protocol != e.protocol() {
		return api.Refuse("model", "the request is not recorded (gateway.record), and only a model that speaks its protocol gets it then: name another model, or call the endpoint of %s", info.Protocol)
	}
	y := &relay{endpoint: e, out: w, streamed: asked.Stream}
	err := g.engine.Turns.Pass(r.Context(), engine.PassRequest{
		Project: scope.ProjectID, Upstream: asked.upstream, Body: withModel(body, info.Name), Forwarding: y.forwarding(r, info.Name, asked.upstream.ForwardCredentials),
	}, y.write)
	if failed := new(model.Error); errors.As(err, &failed) {
		return y.fail(modelFailed(failed.TurnError()))
	}
	if err == nil && y.begun && y.isStream() && !e.ends(y.last) {
		y.writeLast(e.lastEvent())
	}
	return err
}
