package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// createKey makes a key by the program.
func createKey(t *testing.T, dir string, args ...string) string {
	t.Helper()
	p := start(t, dir, nil, append([]string{"keys", "create"}, args...)...)
	if code := p.end(); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, p.stderr)
	}
	return strings.TrimSpace(p.stdout.String())
}

// askAs sends a request with a key, "" for none, and returns the status and the answer.
func askAs(t *testing.T, key, method, url, body string) (status int, answer map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// A server that runs counts a new key at once, and knows whose it is.
func TestServeWithKeys(t *testing.T) {
	dir := t.TempDir()
	p, address := startServer(t, dir)
	p.stderr.wait(t, "keys +none yet: every client that reaches this address has access")
	if status, answer := askAs(t, "", "POST", address+"/chat", `{"session_id": "s1", "message": "Hello"}`); status != 200 {
		t.Fatalf("status %d: %v", status, answer)
	}
	key := createKey(t, dir, "--project", "acme")
	for _, call := range []struct {
		key, method, path string
		status            int
	}{
		{key, "POST", "/chat", 200},
		{key, "GET", "/api/conversations/s1", 200},
		{"", "POST", "/chat", 401},
		{key[:len(key)-1], "POST", "/chat", 401},
		{"", "GET", "/healthz", 200},
	} {
		body := ""
		if call.method == "POST" {
			body = `{"session_id": "s1", "message": "Hello"}`
		}
		status, answer := askAs(t, call.key, call.method, address+call.path, body)
		if status != call.status {
			t.Errorf("%s %s: status %d, want %d: %v", call.method, call.path, status, call.status, answer)
		}
		if project, ok := answer["project_id"]; ok && project != "acme" {
			t.Errorf("the conversation is in project %v", project)
		}
	}
	p.stderr.wait(t, "project=acme key_id="+key[4:16])
	if strings.Contains(p.stderr.String(), key[20:]) {
		t.Error("the log has the key")
	}
}

// Other machines are let near as soon as there is a key that they have to know.
func TestServeOthers(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, nil, "serve", "--listen", "0.0.0.0:0", "--set", "server.keys=never")
	if code := p.end(); code != 2 || !strings.Contains(p.stderr.String(), "it would be open to them") {
		t.Errorf("ended with %d:\n%s", code, p.stderr)
	}
	p = start(t, dir, nil, "serve", "--listen", "0.0.0.0:0", "--set", "server.keys=always") // as containers do
	first := p.stderr.wait(t, `on http://\S+:(\d+)`)[1]
	p.stderr.wait(t, "keys +needed by every caller, and there is none yet")
	if status, answer := askAs(t, "", "GET", "http://127.0.0.1:"+first+"/api/models", ""); status != 401 {
		t.Errorf("with no key yet: status %d: %v", status, answer)
	}
	key := createKey(t, dir)
	if status, answer := askAs(t, key, "GET", "http://127.0.0.1:"+first+"/api/models", ""); status != 200 {
		t.Errorf("with the first key: status %d: %v", status, answer)
	}
	p = start(t, dir, nil, "serve", "--listen", "0.0.0.0:0")
	port := p.stderr.wait(t, `on http://\S+:(\d+)`)[1]
	p.stderr.wait(t, "keys +needed by every caller")
	p.stderr.wait(t, `-H "authorization: bearer \$KEY"`)
	address := "http://127.0.0.1:" + port
	if status, answer := askAs(t, "", "GET", address+"/api/models", ""); status != 401 {
		t.Errorf("status %d: %v", status, answer)
	}
	if status, answer := askAs(t, key, "GET", address+"/api/models", ""); status != 200 {
		t.Errorf("status %d: %v", status, answer)
	}
	revoke := start(t, dir, nil, "keys", "revoke", key)
	if code := revoke.end(); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, revoke.stderr)
	}
	p = start(t, dir, nil, "serve", "--listen", "0.0.0.0:0")
	if code := p.end(); code != 2 || !strings.Contains(p.stderr.String(), "there is no usable API key") {
		t.Errorf("with no usable key it ended with %d:\n%s", code, p.stderr)
	}
}

// On this machine alone the setting says whether keys are needed.
func TestServeKeysSetting(t *testing.T) {
	dir := t.TempDir()
	_, address := startServer(t, dir, "--set", "server.keys=always")
	if status, answer := askAs(t, "", "GET", address+"/api/models", ""); status != 401 {
		t.Errorf("always: status %d: %v", status, answer)
	}
	createKey(t, dir)
	_, address = startServer(t, dir, "--set", "server.keys=never")
	if status, answer := askAs(t, "", "GET", address+"/api/models", ""); status != 200 {
		t.Errorf("never: status %d: %v", status, answer)
	}
}
