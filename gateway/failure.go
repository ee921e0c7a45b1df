package gateway

import (
	"net/http"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
)

// upstreamAnswer is what is known of an upstream's answer before its body is read. It is safe for concurrent use.
type upstreamAnswer struct {
	mu      sync.Mutex
	status  int // 0 until there is one
	header  http.Header
	refusal []byte // the body, where the status of a forwarded request's answer is not a success
}

// report takes the status and the headers.
func (a *upstreamAnswer) report(status int, header http.Header) { a.reportRefusal(status, header, nil) }

// reportRefusal is report with the body of a refusal.
func (a *upstreamAnswer) reportRefusal(status int, header http.Header, refusal []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.header, a.refusal = status, header, refusal
}

func (a *upstreamAnswer) get() (status int, header http.Header, refusal []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status, a.header, a.refusal
}

// passLimits adds what the upstream says of its limits and of the request to the header of an answer.
func (a *upstreamAnswer) passLimits(to http.Header) {
	_, header, _ := a.get()
	passLimits(to, header)
}

// modelFailed is the problem of an answer that failed. An upstream that refuses what the request says refuses the client's
// request; one that refuses the credentials refuses those of this server.
func modelFailed(failure *continuo.TurnError) *api.Problem {
	p := api.ModelFailed(failure)
	switch {
	case p.Code == "context_overflow":
		p.Status = http.StatusBadRequest
	case p.Status != http.StatusBadGateway:
	case failure.ProviderStatus == http.StatusNotFound:
		p.Status, p.Type, p.Code = http.StatusNotFound, api.InvalidRequest, "model_not_found"
	case failure.ProviderStatus == http.StatusBadRequest, failure.ProviderStatus == http.StatusUnprocessableEntity:
		p.Status, p.Type, p.Code = failure.ProviderStatus, api.InvalidRequest, "invalid_request"
	case failure.ProviderStatus == http.StatusServiceUnavailable, failure.ProviderStatus == statusOverloaded:
		p.Status = http.StatusServiceUnavailable
	}
	return p
}

// statusOverloaded is Anthropic's status of an upstream that has too many requests.
const statusOverloaded = 529
