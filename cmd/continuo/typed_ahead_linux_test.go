package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// heldModel is a model that answers when the test says so.
type heldModel struct {
	t       *testing.T
	asked   chan string // the newest message of each request
	answers chan string // an answer, or the delta of one as JSON
}

// overloaded is the answer of a model that fails.
const overloaded = "503"

// newHeldModel starts the model and makes it the default one of programs that run in dir.
func newHeldModel(t *testing.T, dir string) *heldModel {
	t.Helper()
	m := &heldModel{t, make(chan string), make(chan string)}
	server := httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(server.Close)
	settings := fmt.Sprintf("model: held\nmodels:\n  held: {base_url: %s/v1}\ntools: {ask: [fs.list], project_dir: .}\n", server.URL)
	makeFile(t, filepath.Join(dir, "continuo.yaml"), settings)
	return m
}

func makeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *heldModel) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Content any }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	var answer string
	select {
	case m.asked <- fmt.Sprint(body.Messages[len(body.Messages)-1].Content):
	case <-r.Context().Done():
		return
	}
	select {
	case answer = <-m.answers:
	case <-r.Context().Done():
		return
	}
	if answer == overloaded {
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
		return
	}
	if !strings.HasPrefix(answer, "{") {
		answer = fmt.Sprintf(`{"content": %q}`, answer)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", answer)
	_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// gets waits until the model is asked, and checks the newest message that it was shown.
func (m *heldModel) gets(part string) {
	m.t.Helper()
	select {
	case got := <-m.asked:
		if !strings.Contains(got, part) {
			m.t.Fatalf("the model was asked %q, want %q", got, part)
		}
	case <-m.t.Context().Done():
		m.t.Fatalf("the model was not asked %q", part)
	}
}

// reply has the model answer.
func (m *heldModel) reply(answer string) {
	m.t.Helper()
	select {
	case m.answers <- answer:
	case <-m.t.Context().Done():
	}
}

// callsTool has the model call a tool that a person is asked about.
func (m *heldModel) callsTool(id string) {
	m.t.Helper()
	m.reply(`{"tool_calls":[{"index":0,"id":"` + id + `","type":"function","function":{"name":"fs_list","arguments":"{\"path\":\"` + id + `\"}"}}]}`)
}

// asksFor is the question about a call.
func asksFor(id string) string { return `May this run\?\x1b\[0m fs\.list\(\{"path":"` + id + `"\}\)` }

// prompted is the text on the line of a prompt.
func prompted(text string) string { return `› (\x1b\[0m)?` + text }

// What is typed before a question is shown does not answer it, in a chat with a crew.
func TestTypedAheadInACrew(t *testing.T) {
	dir := t.TempDir()
	m := newHeldModel(t, dir)
	makeFile(t, filepath.Join(dir, "crews", "pair.yaml"),
		"id: pair\nroles:\n  - {role_name: ada, display_name: Ada, connector: model, system_prompt: You look., is_moderator: true}\n")
	p := startInTerminal(t, dir, "crew", "run")
	p.stdout.wait(t, `› `)
	p.types("Look around.\r")
	m.gets("Look around.")
	p.types("y\ra")
	p.stdout.wait(t, `y\r\na`)
	m.callsTool("first")
	p.stdout.wait(t, asksFor("first")+`(?s:.*)`+prompted(`y\r\n`)+`(?s:.*)Typed before the question(?s:.*)`+prompted(`a`))
	p.types("nd this\r")
	p.stdout.wait(t, `(?s:(Typed before the question.*){2}› )`)
	p.types("n\r")
	p.stdout.wait(t, `not allowed: fs\.list`)
	m.gets("")
	m.reply(".....")
	m.gets("y")
	m.reply(".....")
	m.gets("and this")
	m.reply(".....")
	p.stdout.wait(t, `(?s:(The cycle has ended.*){3}› )`)
	p.types("\x04")
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.stdout)
	}
}

// A run takes no messages: what was typed before a question is dropped, also where Enter comes after it.
func TestTypedAheadInARun(t *testing.T) {
	dir := t.TempDir()
	m := newHeldModel(t, dir)
	makeFile(t, filepath.Join(dir, "workflows", "gate.yaml"),
		"nodes:\n  draft: {brief: Write it.}\n  release: {approval: Publish it?}\nedges:\n  - draft -> release\n")
	p := startInTerminal(t, dir, "run", "start", "gate")
	m.gets("The step draft")
	p.types("yes one\ryes two")
	p.stdout.wait(t, `yes one\r\n(?s:.*)yes two`)
	m.callsTool("first")
	p.stdout.wait(t, `May this run\? fs\.list(?s:.*› )`)
	p.types("\r")
	p.stdout.wait(t, `started before the question(?s:.*› )`)
	p.types("no\r")
	m.gets("")
	p.types("yes three")
	p.stdout.wait(t, `yes three`)
	m.reply("It is written.")
	p.stdout.wait(t, `Publish it\?(?s:.*› )`)
	p.types("\r")
	p.stdout.wait(t, `Publish it\?(?s:.*)started before the question(?s:.*› )`)
	p.types("n\r")
	p.stdout.wait(t, `"approved":false`)
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.stdout)
	}
}
