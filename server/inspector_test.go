package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
)

// fakePage is a page of two paths.
type fakePage struct{}

func (fakePage) Patterns() []string { return []string{"GET /conversations/{rest...}", "GET /assets/"} }

func (fakePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = io.WriteString(w, "the page for "+r.URL.Path)
}

// browser is the header that browsers send when a person opens a page.
var browser = []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

// load asks for a page as a browser does. Its answer is none that openapi.json describes.
func load(handler http.Handler, host, path string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
	request.Header.Set(browser[0], browser[1])
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// The page needs no key, because it has no data; what it reads does.
func TestInspectorNeedsNoKey(t *testing.T) {
	keys := newKeyring(t)
	keys.newKey("default")
	handler := newKeyedServer(t, keys, Options{Inspector: fakePage{}})
	for _, path := range []string{"/", "/conversations/conv_1", "/assets/index.js"} {
		answer := load(handler, "localhost:8787", path)
		if answer.Code != 200 || answer.Body.String() != "the page for "+path || answer.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: status %d, %v: %s", path, answer.Code, answer.Header(), answer.Body)
		}
	}
	ask(t, handler, "GET", "/api/conversations", "", browser...).unauthorized("missing_api_key")
	ask(t, handler, "GET", "/api/nothing", "", browser...).unauthorized("missing_api_key")
	ask(t, handler, "GET", "/conversations/../api/conversations", "", browser...).unauthorized("missing_api_key")
	ask(t, handler, "POST", "/conversations/conv_1", "{}").unauthorized("missing_api_key")
}

// Programs still find the list of calls at the root.
func TestInspectorAtRoot(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{Inspector: fakePage{}})
	for _, accept := range []string{"", "*/*", "application/json"} {
		answer := ask(t, handler, "GET", "/", "", "Accept", accept)
		if !strings.Contains(string(answer.body), "POST   /chat") || answer.header.Get("Vary") != "Accept" {
			t.Errorf("Accept %q: %v: %s", accept, answer.header, answer.body)
		}
	}
	for _, path := range []string{"/", "/conversations/conv_1"} {
		if answer := load(handler, "continuo.example", path); answer.Code != 403 || !strings.Contains(answer.Body.String(), "host_not_allowed") {
			t.Errorf("%s under another name: status %d: %s", path, answer.Code, answer.Body)
		}
	}
}

func TestWithoutInspector(t *testing.T) {
	handler := newServer(t)
	if answer := ask(t, handler, "GET", "/", "", browser...); !strings.Contains(string(answer.body), "POST   /chat") {
		t.Errorf("the root has %s", answer.body)
	}
	ask(t, handler, "GET", "/conversations/conv_1", "", browser...).failed(404, "not_found", "")
}
