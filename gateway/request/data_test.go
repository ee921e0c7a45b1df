package request_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// eachLine calls f for each line of the packed files of the shared data that match a pattern, or skips the test.
func eachLine(t *testing.T, pattern string, f func(t *testing.T, line []byte)) {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(folder, pattern))
	if len(files) == 0 {
		t.Skipf("SKIPPED: no %s in %s; set CONTINUO_DATA to the folder that holds it", pattern, folder)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			packed, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer packed.Close()
			unpacked, err := gzip.NewReader(packed)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReaderSize(unpacked, 1<<20)
			for {
				line, err := lines.ReadBytes('\n')
				if len(line) > 0 {
					f(t, line)
				}
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// protocol is one of the protocols that a body is read from and rendered to.
type protocol struct {
	provider string
	read     func([]byte, request.Options) (*request.Request, error)
	render   func(continuo.Envelope, []window.Message, render.Options) ([]byte, error)
}

var (
	chat      = protocol{"openai", request.ReadChat, render.OpenAIChatRequest}
	anthropic = protocol{"anthropic", request.ReadAnthropic, render.AnthropicRequest}
)

// again renders the entries of a request and reads the body.
func (p protocol) again(t *testing.T, r *request.Request) *request.Request {
	t.Helper()
	var shown []window.Message
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Seq = int64(i + 1)
		shown = append(shown, window.Message{
			Seq: e.Seq, Role: e.Role, Content: e.Content, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID, Name: e.Name, Entry: e,
		})
	}
	body, err := p.render(continuo.Envelope{
		Model: r.Model, System: r.System, Tools: r.Tools, MaxOutputTokens: r.MaxOutputTokens, Temperature: r.Temperature, Stream: r.Stream,
	}, shown, render.Options{Provider: p.provider})
	if err != nil {
		t.Fatal(err)
	}
	read, err := p.read(body, request.Options{Provider: p.provider})
	if err != nil {
		t.Fatalf("read what was rendered: %v\n%.2000s", err, body)
	}
	return read
}

func text(entries []continuo.Entry) []string {
	lines := make([]string, len(entries))
	for i := range entries {
		e := entries[i]
		e.Seq = 0
		if e.Reasoning != nil && e.Reasoning.Signature == "" {
			e.Reasoning = nil // rendered only as vendor data
		}
		lines[i] = string(rawjson.MustMarshal(&e))
	}
	return lines
}

// sameEntries compares entries, with reasoning that has no signature left out.
func sameEntries(t *testing.T, name string, got, want []continuo.Entry) bool {
	t.Helper()
	a, b := text(got), text(want)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: entry %d:\ngot  %.600s\nwant %.600s", name, i, a[i], b[i])
			return false
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s: %d entries, want %d", name, len(a), len(b))
	}
	return len(a) == len(b)
}

// Every recorded request of the agents is read without a problem, and its messages are where it says.
func TestAgentTraffic(t *testing.T) {
	eachLine(t, "agent-traffic/*.jsonl.gz", func(t *testing.T, line []byte) {
		var recorded struct {
			Scenario string `json:"scenario"`
			Seq      int    `json:"seq"`
			Path     string `json:"path"`
			Body     string `json:"request_body"`
		}
		if err := json.Unmarshal(line, &recorded); err != nil {
			t.Fatal(err)
		}
		var p protocol
		switch recorded.Path {
		case "/v1/chat/completions":
			p = chat
		case "/v1/messages?beta=true":
			p = anthropic
		case "/v1/responses":
			p = protocol{provider: "openai", read: request.ReadResponses}
		default:
			if !strings.Contains(recorded.Path, "enerateContent") {
				return
			}
			p = protocol{provider: "google", read: request.ReadGemini}
		}
		r, err := p.read([]byte(recorded.Body), request.Options{Provider: p.provider})
		if err != nil {
			t.Fatalf("%s %d: %v", recorded.Scenario, recorded.Seq, err)
		}
		for _, problem := range r.Problems {
			if p.provider == "google" && problem.Rule == continuo.RuleDuplicateAnswer {
				continue // when resumed, Gemini CLI repeats the last result
			}
			t.Errorf("%s %d: %v", recorded.Scenario, recorded.Seq, problem)
		}
		for i, m := range r.Messages {
			if raw := json.RawMessage(recorded.Body[m.Start:m.End]); !json.Valid(raw) {
				t.Fatalf("%s %d: message %d is not at %d to %d", recorded.Scenario, recorded.Seq, i, m.Start, m.End)
			}
		}
	})
}

// Rendering entries and reading the request gives the same entries: in the conversations of the shared data, once
// those that a protocol cannot have apart (two user messages in a row) are one.
func TestRoundTrip(t *testing.T) {
	count := 0
	eachLine(t, "*.jsonl.gz", func(t *testing.T, line []byte) {
		var c struct {
			ID         string            `json:"id"`
			Protocol   string            `json:"protocol"`
			Messages   []json.RawMessage `json:"messages"`
			Violations []json.RawMessage `json:"violations"`
		}
		if json.Unmarshal(line, &c) != nil || len(c.Violations) > 0 || len(c.Messages) == 0 || len(line) > 60_000 && os.Getenv("CONTINUO_LONG") == "" {
			return
		}
		p := chat
		if c.Protocol == "anthropic" {
			p = anthropic
		}
		body := rawjson.MustMarshal(map[string]any{"model": "m", "max_tokens": 100, "messages": c.Messages})
		r, err := p.read(body, request.Options{Provider: p.provider})
		if err != nil || len(r.Problems) > 0 || len(r.Entries) == 0 {
			return // TestProblems
		}
		count++
		once := p.again(t, r)
		twice := p.again(t, once)
		if !sameEntries(t, c.ID, twice.Entries, once.Entries) {
			t.FailNow()
		}
		if len(once.Problems) > 0 {
			t.Errorf("%s: %v", c.ID, once.Problems[0])
		}
		if len(once.Entries) == len(r.Entries) && p.provider == chat.provider {
			sameEntries(t, c.ID, once.Entries, r.Entries)
		}
	})
	if count == 0 && !t.Skipped() {
		t.Error("no conversation was read")
	}
	t.Logf("%d conversations", count)
}
