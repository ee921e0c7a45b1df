package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// silent is an upstream without a network: after the beginning of a stream, or before its header, it sends nothing more.
type silent struct{ afterHeader bool }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	v, streamed := vendorOf(r, asked)
	if !s.afterHeader {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	kind, head := "application/json", v.whole[:len(v.whole)/2]
	if streamed {
		kind, head = "text/event-stream", v.head
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(io.MultiReader(strings.NewReader(head), waiting{r.Context()})),
	}, nil
}

// waiting is a body of which nothing arrives.
type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, errors.New("the connection was closed")
}

// An upstream that sends nothing for longer than its limit has failed, before and within its answer, through every endpoint.
func TestASilentUpstreamThroughEveryEndpoint(t *testing.T) {
	for _, afterHeader := range []bool{true, false} {
		eachCase(t, nil, func(t *testing.T, e *clientEndpoint, v *vendor, streamed bool, path, body string) {
			synctest.Test(t, func(t *testing.T) {
				store := storetest.NewMemory()
				log := continuo.NewLog(store, continuo.LogOptions{})
				models := vendorModels("http://upstream.invalid", &http.Client{Transport: silent{afterHeader}})
				made, err := engine.New(log, engine.Options{Models: models, Default: model.ProtocolOpenAIChat}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer made.Close(context.Background())
				g := &testGateway{log: log}
				answer := httptest.NewRecorder()
				gateway.New(made, log, store, gateway.Options{}).Handler(continuo.Scope{ProjectID: continuo.DefaultProject}).
					ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
				text := ""
				if afterHeader && (streamed || e.protocol != v.protocol) {
					text = firstWords
				}
				response, got := answer.Result(), answer.Body.String()
				if streamed && afterHeader {
					if end := e.readStream(got); end.text != text || !end.failed || end.wrong != "" {
						t.Errorf("got %+v from %s", end, got)
					}
				} else {
					if response.StatusCode != http.StatusGatewayTimeout {
						t.Errorf("got %d", response.StatusCode)
					}
					e.checkRefused(t, got, response.StatusCode)
				}
				entries := g.entries(t, response)
				if last := entries[len(entries)-1]; last.Error == nil || last.Error.Reason != continuo.ReasonTimeout || last.Content.String() != text {
					t.Errorf("the log ends with %+v", last)
				}
			})
		})
	}
}
