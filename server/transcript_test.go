package server

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata/transcripts")

// Each file in testdata/transcripts is a dialogue with a server of its own: sections named request, each
// followed by the answer that must come. Ids, times and other things that differ from run to run stand
// there as labels, which later requests may use.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runTranscript(t, file) })
	}
	ask(t, newServer(t), "GET", "/metrics", "") // its figures differ from run to run
	if !t.Failed() {
		checkCoverage(t)
	}
}

func runTranscript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	handler, labels := newServer(t), &labels{given: map[string]string{}}
	var written []txtar.File
	for i, section := range archive.Files {
		if section.Name != "request" {
			continue
		}
		method, target, header, body := parseRequest(labels.resolve(string(section.Data)))
		have := labels.show(ask(t, handler, method, target, body, header...))
		written = append(written, section, txtar.File{Name: "answer", Data: []byte(have)})
		if *update {
			continue
		}
		want := ""
		if i+1 < len(archive.Files) && archive.Files[i+1].Name == "answer" {
			want = string(archive.Files[i+1].Data)
		}
		if have != want {
			t.Errorf("%s, request %d (%s %s):\n--- want\n%s--- have\n%s", file, i/2+1, method, target, want, have)
		}
	}
	if *update {
		archive.Files = written
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
	idPattern     = regexp.MustCompile(`\b(conv|ent|turn)_[0-9a-f]{32}(_[0-9a-f]{12})?`)
	cursorPattern = regexp.MustCompile(`"next_cursor":"([A-Za-z0-9_-]+)"`)
	blurs         = []struct {
		pattern *regexp.Regexp
		with    string
	}{
		{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`), `"TIME"`},
		{regexp.MustCompile(`,"(latency_ms|first_delta_ms|duration_ms)":\d+`), ``},
		{regexp.MustCompile(`\b[0-9a-f]{64}\b`), `SHA256`},
		{regexp.MustCompile(`"view_hash":"[0-9a-f]{16}"`), `"view_hash":"HASH"`},
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
		operation := route.method + " " + route.shownPath()
		if !d.has(operation, "success") {
			t.Errorf("no transcript has %s succeed", operation)
		}
		// The probes answer to any name and take no parameters; the store's failure has a test of its own.
		if probe := route.path == "/healthz" || route.path == "/readyz"; !probe && !d.has(operation, "error") {
			t.Errorf("no transcript has %s fail", operation)
		}
	}
}
