package listing_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/listing"
)

func TestModels(t *testing.T) {
	for _, test := range []struct{ protocol, base, path, header, answer string }{
		{model.ProtocolOpenAIChat, "/v1", "/v1/models", "Authorization: Bearer k", `{"object":"list","data":[{"id":"a"},{"id":"b"}]}`},
		{model.ProtocolResponses, "/v1", "/v1/models", "Authorization: Bearer k", `{"object":"list","data":[{"id":"a"},{"id":"b"}]}`},
		{model.ProtocolAnthropic, "", "/v1/models?limit=1000", "X-Api-Key: k", `{"data":[{"type":"model","id":"a"},{"type":"model","id":"b"}],"has_more":false}`},
		{model.ProtocolGemini, "", "/v1beta/models?pageSize=1000", "X-Goog-Api-Key: k", `{"models":[{"name":"models/a"},{"name":"models/b"}]}`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var name, value string
			_, _ = fmt.Sscanf(test.header, "%s", &name)
			name = name[:len(name)-1]
			value = test.header[len(name)+2:]
			if r.URL.RequestURI() != test.path || r.Header.Get(name) != value {
				t.Errorf("%s: asked %s with %v", test.protocol, r.URL.RequestURI(), r.Header)
			}
			_, _ = io.WriteString(w, test.answer)
		}))
		got, err := listing.Models(context.Background(), listing.Upstream{
			Protocol: test.protocol, BaseURL: server.URL + test.base, Header: listing.Credentials(test.protocol, "k"),
		})
		server.Close()
		if err != nil || !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%s: got %q, %v", test.protocol, got, err)
		}
	}
}

func TestAListThatIsNone(t *testing.T) {
	for status, answer := range map[int]string{http.StatusUnauthorized: `{}`, http.StatusOK: `<html>`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
		}))
		if got, err := listing.Models(context.Background(), listing.Upstream{Protocol: model.ProtocolOpenAIChat, BaseURL: server.URL}); err == nil {
			t.Errorf("%d: got %q", status, got)
		}
		server.Close()
	}
}
