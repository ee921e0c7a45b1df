package render

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

var update = flag.Bool("update", false, "rewrite the expected sections of testdata/*.txtar")

// goldenSettings are what a file of testdata says beside the log.
type goldenSettings struct {
	Provider        string   `json:"provider"`
	Cycle           int64    `json:"cycle"`
	Dropped         int64    `json:"dropped"` // messages before the log that the plan left out
	Open            bool     `json:"open"`    // the last group is open: the plan makes up the missing results
	System          []string `json:"system"`
	Tools           []string `json:"tools"`
	Stream          bool     `json:"stream"`
	MaxOutputTokens int      `json:"max_output_tokens"`
}

// Each file of testdata holds a log and what becomes of it in each format.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, sections := parseArchive(string(data))
			got := renderGolden(t, sections)
			if *update {
				writeArchive(t, file, head, sections, got)
				return
			}
			for name, text := range got {
				if text != sections[name] {
					t.Errorf("%s:\n%s\nwant (rewrite with -update):\n%s", name, text, sections[name])
				}
			}
		})
	}
}

func renderGolden(t *testing.T, sections map[string]string) map[string]string {
	t.Helper()
	var settings goldenSettings
	if err := json.Unmarshal([]byte(sections["settings.json"]), &settings); err != nil {
		t.Fatal(err)
	}
	entries := readLog(t, sections["log.jsonl"], settings.Dropped)
	plan := goldenPlan(entries, settings)
	env := continuo.Envelope{Model: "model-1", System: settings.System, Stream: settings.Stream, MaxOutputTokens: settings.MaxOutputTokens}
	for _, name := range settings.Tools {
		env.Tools = append(env.Tools, continuo.ToolSpec{Name: name, Description: "Does " + name, Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	o := Options{Provider: settings.Provider}
	openai, err := OpenAIChatRequest(env, plan.Messages, o)
	if err != nil {
		t.Fatal(err)
	}
	anthropic, err := AnthropicRequest(env, plan.Messages, o)
	if err != nil {
		t.Fatal(err)
	}
	responses, err := ResponsesRequest(env, plan.Messages, o)
	if err != nil {
		t.Fatal(err)
	}
	env.Model = "gemini-3-pro"
	gemini, err := GeminiRequest(env, plan.Messages, o)
	if err != nil {
		t.Fatal(err)
	}
	env.Model = "model-1"
	transcript := TranscriptOf(plan)
	readsBack(t, "transcript", transcript)
	got := map[string]string{"openai.json": indented(t, openai), "anthropic.json": indented(t, anthropic), "responses.json": indented(t, responses), "gemini.json": indented(t, gemini), "transcript.txt": transcript.String()}
	for name, body := range transcriptRequests(t, env, plan, o) {
		got[name] = indented(t, body)
	}
	return got
}

// transcriptRequests are the bodies for models without tool calls. The instruction's own words, which are
// the same in every file, are left to TestInstruction.
func transcriptRequests(t *testing.T, env continuo.Envelope, plan *window.Plan, o Options) map[string][]byte {
	t.Helper()
	env.Instruction = "(the instruction)"
	openai, err := OpenAIChatTranscript(env, plan, o)
	if err != nil {
		t.Fatal(err)
	}
	anthropic, err := AnthropicTranscript(env, plan)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"openai-transcript.json": openai, "anthropic-transcript.json": anthropic}
}

// goldenPlan makes the plan of a build that shows all entries.
func goldenPlan(entries []continuo.Entry, settings goldenSettings) *window.Plan {
	plan := &window.Plan{Messages: wholeMessages(entries), Cycle: settings.Cycle, At: settings.Dropped + int64(len(entries))}
	plan.Window.Start = settings.Dropped + 1
	if settings.Cycle > 0 {
		plan.Cycle += settings.Dropped
	}
	if settings.Dropped > 0 {
		plan.Items = []window.PlanItem{{Seq: 1, Through: settings.Dropped, Verdict: window.Dropped}}
	}
	if settings.Open {
		var group continuo.Group
		for i := range entries {
			group.Accept(&entries[i])
		}
		for _, id := range group.Open {
			plan.Messages = append(plan.Messages, window.Message{Seq: plan.Messages[len(plan.Messages)-2].Seq, Role: continuo.Tool, ToolCallID: id, Content: continuo.Text("[No result: the call was still open.]")})
		}
	}
	return plan
}

func readLog(t *testing.T, lines string, after int64) []continuo.Entry {
	t.Helper()
	var entries []continuo.Entry
	for line := range strings.Lines(lines) {
		var entry continuo.Entry
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		entry.Seq = after + int64(len(entries)) + 1
		entries = append(entries, entry)
	}
	return entries
}

func indented(t *testing.T, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String() + "\n"
}

// parseArchive splits text at lines like "-- name --".
func parseArchive(text string) (head string, sections map[string]string) {
	sections = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if found, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(found, " --\n") {
			name = strings.TrimSuffix(found, " --\n")
			continue
		}
		sections[name] += line
	}
	return sections[""], sections
}

func writeArchive(t *testing.T, file, head string, sections, got map[string]string) {
	t.Helper()
	text := head
	for _, name := range []string{"settings.json", "log.jsonl"} {
		text += "-- " + name + " --\n" + sections[name]
	}
	names := make([]string, 0, len(got))
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text += "-- " + name + " --\n" + got[name]
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
