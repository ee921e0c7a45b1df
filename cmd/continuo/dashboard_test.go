package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/server"
)

var (
	shownMetric = regexp.MustCompile(`\b(?:continuo|gen_ai_client)_[a-z_]+`)
	describedAs = regexp.MustCompile(`fqName: "([^"]+)", help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{([^}]*)\}`)
)

// Every metric that the dashboard and its page name exists in the program, and the page names every metric of the program.
func TestTheMetricsOfTheDashboardExist(t *testing.T) {
	loaded, err := config.Load(config.Options{Env: []string{"CONTINUO_STORE_PATH=" + filepath.Join(t.TempDir(), "continuo.db")}})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	w, err := (&app{console: &console{}}).wireWith(t.Context(), loaded, buildOptions{turns: true, registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	handler := server.New(w.engine, server.Options{Registry: registry})
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:8787/chat", strings.NewReader(`{"message": "Hello"}`))
	request.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(answer, request) // some are made with the first turn
	if answer.Code != http.StatusOK {
		t.Fatal(answer.Body)
	}
	exist, rows := metricsOf(t, registry)
	page := map[string]bool{}
	for _, file := range []string{"dashboard.json", "observability.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range shownMetric.FindAllString(string(text), -1) {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			page[base] = true
			if !exist[name] && !exist[base] {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
	for name := range exist {
		if strings.HasPrefix(name, "continuo_") && !page[name] {
			t.Errorf("neither docs/dashboard.json nor docs/observability.md names %s", name)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/observability.md lacks a row that ends with %q", row)
		}
	}
}

// metricsOf are the names of a registry's metrics, with and without values, and what the table of all series has of each of
// ours behind its kind: labels and meaning.
func metricsOf(t *testing.T, registry *prometheus.Registry) (exist map[string]bool, rows []string) {
	t.Helper()
	exist = map[string]bool{}
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		registry.Describe(described)
	}()
	for description := range described {
		if found := describedAs.FindStringSubmatch(description.String()); found != nil {
			exist[found[1]] = true
			if meaning, err := strconv.Unquote(found[2]); err == nil && strings.HasPrefix(found[1], "continuo_") {
				rows = append(rows, " | "+strings.ReplaceAll(found[3], ",", ", ")+" | "+meaning+" |\n")
			}
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		exist[family.GetName()] = true
	}
	return exist, rows
}
