package server

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata/transcripts")

// Each file in testdata/transcripts is a dialogue with a server of its own: sections named request, each
// followed by the answer that must come. After a "request left open" the dialogue continues as soon as
// its stream asks for approval or its run waits; its result is the "answer of the open request". The prefix of a
// file's name chooses the server: tools run only after approval (approvals), every part that is no text is an attachment
// (attachments), there are agents, workflows (runs) or crews. Streams of runs and crews are shown without live events.
// Ids, times and other values that differ from run to run are labels, which later requests may use.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	ran := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ran++
			runTranscript(t, file)
		})
	}
	if ran < len(files) {
		return // the flag -run selects some of them
	}
	ask(t, newServer(t), "GET", "/openapi.json", "")         // a file of its own
	ask(t, newServer(t), "GET", "/metrics", "")              // its figures differ from run to run
	ask(t, newServer(t), "GET", "/api/workflows/schema", "") // likewise
	ask(t, newServer(t), "GET", "/api/crews/schema", "")     // likewise
	exerciseRuns(t)                                          // the states depend on timing
	exerciseCrews(t)                                         // likewise
	exerciseTasks(t)                                         // likewise
	exerciseMCP(t)
	exerciseKeys(t)
	exerciseLive(t)
	if !t.Failed() {
		checkCoverage(t)
	}
}

func runTranscript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := &dialogue{t: t, handler: newServer(t), labels: &labels{given: map[string]string{}}}
	if strings.HasPrefix(filepath.Base(file), "attachments") {
		d.handler = New(engineWith(t, storetest.NewMemory(), continuo.LogOptions{MaxInlinePart: 1}, engine.Options{}), Options{})
	}
	if strings.HasPrefix(filepath.Base(file), "patterns") {
		d.handler = New(newEngine(t, engine.Options{Memory: memories.Options{Enabled: true}}), Options{})
	}
	if strings.HasPrefix(filepath.Base(file), "runs") {
		_, d.handler = newRunServer(t)
	}
	if strings.HasPrefix(filepath.Base(file), "crews") {
		_, d.handler = newCrewServer(t)
	}
	if strings.HasPrefix(filepath.Base(file), "approvals") {
		d.handler = New(newEngine(t, engine.Options{Tools: tool.Set{upper{}}, Policy: tool.Policy{Otherwise: tool.Ask}}), Options{})
	}
	if strings.HasPrefix(filepath.Base(file), "agents") {
		d.handler = New(newEngine(t, withAgents(&fakeModel{"gpt-4o", obedient}, &fakeModel{"gpt-4o-mini", obedient})), Options{})
	}
	sections := archive.Files
	archive.Files = nil
	for i, section := range sections {
		asked, name, have := section, "answer", ""
		switch section.Name {
		case "request":
			have = d.answer(string(section.Data))
			archive.Files = append(archive.Files, section)
		case "request left open":
			d.leaveOpen(string(section.Data))
			archive.Files = append(archive.Files, section)
			continue
		case "answer of the open request":
			name, have = section.Name, d.labels.show(within(t, "the end of the open request", d.open))
		default:
			continue
		}
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(have)})
		want := ""
		switch {
		case asked.Name != "request":
			want = string(asked.Data)
		case i+1 < len(sections) && sections[i+1].Name == "answer":
			want = string(sections[i+1].Data)
		}
		if have != want && !*update {
			t.Errorf("%s, section %d (%.60q):\n--- want\n%s--- have\n%s", file, i+1, asked.Data, want, have)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// dialogue is the execution of one file.
type dialogue struct {
	t       *testing.T
	handler http.Handler
	labels  *labels
	open    chan *reply // gets the answer of the request that was left open
}

// answer asks and writes the answer with labels.
func (d *dialogue) answer(request string) string {
	method, target, header, body := parseRequest(d.labels.resolve(request))
	answer := ask(d.t, d.handler, method, target, body, header...)
	normalizeRunStream(target, answer)
	return d.labels.show(answer)
}

// leaveOpen begins a request and returns when its stream asks for approval, or says that its run waits.
func (d *dialogue) leaveOpen(request string) {
	method, target, header, body := parseRequest(d.labels.resolve(request))
	until := "event: approval\n"
	if strings.HasPrefix(target, "/api/runs") {
		until = `"state":"waiting","first_seq"`
	}
	waits, open := make(chan struct{}, 1), make(chan *reply, 1)
	watched := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.handler.ServeHTTP(&watchedWriter{w, until, waits}, r)
	})
	go func() {
		answer := ask(d.t, watched, method, target, body, header...)
		normalizeRunStream(target, answer)
		open <- answer
	}()
	within(d.t, "a call or a run that waits for approval", waits)
	d.open = open
}

// watchedWriter tells when a text is written.
type watchedWriter struct {
	http.ResponseWriter
	text string
	seen chan<- struct{}
}

func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchedWriter) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte(w.text)) {
		select {
		case w.seen <- struct{}{}:
		default: // seen before
		}
	}
	return w.ResponseWriter.Write(data)
}

// parseRequest reads "METHOD TARGET", header lines, an empty line, and a body.
func parseRequest(text string) (method, target string, header []string, body string) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	method, target, _ = strings.Cut(lines[0], " ")
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		header = append(header, name, strings.TrimSpace(value))
	}
	return method, target, header, strings.TrimSuffix(body, "\n")
}

// labels gives names to what differs from run to run.
type labels struct {
	given map[string]string // by value
	count map[string]int
}

var (
	idPattern     = regexp.MustCompile(`\b(conv|ent|turn|proc|att|run|task|agent)_[0-9a-f]{32}(_[0-9a-f]{12})?`)
	cursorPattern = regexp.MustCompile(`"next_cursor":"([A-Za-z0-9_-]+)"`)
	blurs         = []struct {
		pattern *regexp.Regexp
		with    string
	}{
		{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`), `"TIME"`},
		{regexp.MustCompile(`(\[\w+, )\d{4}-\d\d-\d\d\]`), `${1}DATE]`}, // of facts
		{regexp.MustCompile(`,"(latency_ms|first_delta_ms|duration_ms)":\d+`), ``},
		{regexp.MustCompile(`,"running":(true|false)`), ``}, // of roles
		{regexp.MustCompile(`\b[0-9a-f]{64}\b`), `SHA256`},
		{regexp.MustCompile(`"view_hash":"[0-9a-f]{16}"`), `"view_hash":"HASH"`},
		{regexp.MustCompile(`("state":"running".*?"last_event":)\d+`), `${1}0`}, // streamed events are stored a little later
		{regexp.MustCompile(`"key":"import-[0-9a-f]{24}"`), `"key":"import-HASH"`},
	}
)

func (l *labels) of(kind, value string) string {
	if l.given[value] == "" {
		if l.count == nil {
			l.count = map[string]int{}
		}
		l.count[kind]++
		l.given[value] = fmt.Sprintf("<%s-%d>", kind, l.count[kind])
	}
	return l.given[value]
}

// resolve puts values in the place of labels.
func (l *labels) resolve(text string) string {
	for value, label := range l.given {
		text = strings.ReplaceAll(text, label, value)
	}
	return text
}

// show writes an answer with labels.
func (l *labels) show(answer *reply) string {
	body := cursorPattern.ReplaceAllStringFunc(string(answer.body), func(text string) string {
		return `"next_cursor":"` + l.of("cursor", cursorPattern.FindStringSubmatch(text)[1]) + `"`
	})
	body = idPattern.ReplaceAllStringFunc(body, func(id string) string {
		kind, _, _ := strings.Cut(id, "_")
		return l.of(kind, id)
	})
	for _, blur := range blurs {
		body = blur.pattern.ReplaceAllString(body, blur.with)
	}
	text := fmt.Sprintf("%d %s\n", answer.status, http.StatusText(answer.status))
	for _, name := range []string{"Content-Type", "Content-Disposition", "Allow", "Retry-After"} {
		if value := answer.header.Get(name); value != "" {
			text += name + ": " + idPattern.ReplaceAllStringFunc(value, func(id string) string { return l.of("conv", id) }) + "\n"
		}
	}
	if answer.header.Get("Content-Type") == "application/json" {
		body = pretty([]byte(body))
	}
	if body != "" {
		text += "\n" + strings.TrimSuffix(body, "\n") + "\n"
	}
	return text
}

// checkCoverage checks that the transcripts had every call succeed and fail, so that every schema was held
// against real answers.
func checkCoverage(t *testing.T) {
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range (&server{}).routes() {
		operation := route.Method + " " + route.shownPath()
		if !d.has(operation, "success") {
			t.Errorf("no transcript has %s succeed", operation)
		}
		// The probes answer to any name and take no parameters; the store's failure has a test of its own.
		if !route.Probe && !d.has(operation, "error") {
			t.Errorf("no transcript has %s fail", operation)
		}
	}
}
