package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/sse"
)

// Without alt=sse, Gemini's stream is an array of what its events have, whatever the protocol of the model; a fault is its
// last element.
func TestGeminisStreamAsAnArray(t *testing.T) {
	const body = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	for _, v := range vendors {
		t.Run(v.protocol, func(t *testing.T) {
			whole := stream(v.head + v.keepAlive + v.more + v.end)
			u := newUpstream(t, whole, whole, stream(v.head+v.failed))
			g := newVendorsGateway(t, u.URL)
			path := "/v1beta/models/" + v.protocol + ":streamGenerateContent"
			_, wire := g.post(t, path+"?alt=sse", body)
			var want []json.RawMessage
			events := sse.NewReader(strings.NewReader(wire), 0)
			for {
				event, err := events.Next()
				if err == io.EOF {
					break
				}
				want = append(want, json.RawMessage(event.Data))
			}
			response, got := g.post(t, path, body)
			checkElements(t, response, got, len(want))
			if len(want) < 2 || !strings.Contains(got, firstWords) || !strings.Contains(got, lastWords) || !strings.Contains(got, `"finishReason"`) {
				t.Errorf("got %s, and as events %s", got, wire)
			}
			_, failed := g.post(t, path, body)
			elements := checkElements(t, response, failed, 2)
			if !strings.Contains(string(elements[len(elements)-1]), `"error"`) {
				t.Errorf("of a stream that failed came %s", failed)
			}
			<-u.requests
			if sent := <-u.requests; v.protocol == "gemini" && sent.path != path+"?alt=sse" && !strings.HasSuffix(sent.path, ":streamGenerateContent?alt=sse") {
				t.Errorf("the upstream was asked at %s", sent.path)
			}
		})
	}
}

// checkElements reads an array, and checks how many elements it has.
func checkElements(t *testing.T, response *http.Response, wire string, want int) (elements []json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal([]byte(wire), &elements); err != nil || len(elements) != want {
		t.Fatalf("%d elements, want %d, %v: %s", len(elements), want, err, wire)
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		t.Errorf("its type is %s", kind)
	}
	return elements
}
