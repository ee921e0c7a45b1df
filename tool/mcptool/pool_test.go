package mcptool

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestThePoolKeepsServersByAddressAndHeaders(t *testing.T) {
	now := time.Unix(0, 0)
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	pool := NewPool(Options{Now: func() time.Time { return now }})
	t.Cleanup(func() { _ = pool.Close() })
	get := func(headers map[string]string) *Source {
		t.Helper()
		source, err := pool.Source(t.Context(), server.URL, headers)
		if err != nil || len(source.Tools(t.Context())) == 0 {
			t.Fatal(source, err)
		}
		return source
	}
	first := get(map[string]string{"Authorization": "a"})
	if get(map[string]string{"Authorization": "a"}) != first {
		t.Error("the same server is connected twice")
	}
	if get(map[string]string{"Authorization": "b"}) == first {
		t.Error("two clients with different headers share a connection")
	}
	now = now.Add(pooledIdle + time.Second)
	get(map[string]string{"Authorization": "b"})
	if get(map[string]string{"Authorization": "c"}); len(pool.sources) != 2 {
		t.Errorf("the pool has %d servers: one that nobody asks for stays connected", len(pool.sources))
	}
	if _, err := pool.Source(t.Context(), "http://127.0.0.1:1", nil); err == nil || len(pool.sources) != 2 {
		t.Errorf("a server that does not start: %v, the pool has %d", err, len(pool.sources))
	}
	_ = pool.Close()
	if _, err := pool.Source(t.Context(), server.URL, nil); err == nil {
		t.Error("a closed pool connects")
	}
}
