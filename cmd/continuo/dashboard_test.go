package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/server"
)

// series is one that /metrics may have.
type series struct{ name, kind, labels, help string }

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]*)", .*variableLabels: \{([^}]*)\}\}$`)

// allSeries returns every series that the program makes, by name, and its labels.
func allSeries(t *testing.T) (map[string]series, map[string]bool) {
	t.Helper()
	registry := prometheus.NewRegistry()
	engine.NewMetrics(registry)
	server.New(nil, server.Options{Registry: registry})
	all, labels := map[string]series{}, map[string]bool{}
	add := func(name, help string, names []string) {
		for _, label := range names {
			labels[label] = true
		}
		all[name] = series{name, kindOfSeries(name), strings.Join(names, ", "), help}
	}
	for _, text := range described(registry) {
		found := description.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("cannot read %s", text)
		}
		add(found[1], found[2], slices.DeleteFunc(strings.Split(found[3], ","), func(name string) bool { return name == "" }))
	}
	ofConventions(t, add)
	if len(all) < 20 {
		t.Fatalf("only %d series", len(all))
	}
	return all, labels
}

// ofConventions adds what OpenTelemetry's exporter has once a turn was made and one failed.
func ofConventions(t *testing.T, add func(name, help string, labels []string)) {
	t.Helper()
	registry := prometheus.NewRegistry()
	tel := newTelemetry(collectorSettings(""), nil, registry, discard())
	defer tel.Close(t.Context())
	aTurn(t, tel)
	broken := tel.model(&modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Fails(continuo.ReasonNetwork)}}})
	for _, err := range broken.Stream(t.Context(), nil) {
		if err == nil {
			t.Error("a broken model answered")
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		names := map[string]bool{}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				names[label.GetName()] = true
			}
		}
		if strings.HasPrefix(family.GetName(), "db_") {
			names["error_type"] = true // aTurn's store did not fail
		}
		add(family.GetName(), family.GetHelp(), slices.Sorted(maps.Keys(names)))
	}
}

func described(registry *prometheus.Registry) []string {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	var texts []string
	for found := range descriptions {
		texts = append(texts, found.String())
	}
	return texts
}

func kindOfSeries(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_behind_seconds"):
		return "gauge"
	case strings.HasSuffix(name, "_seconds"), strings.HasSuffix(name, "_usage"):
		return "histogram"
	}
	return "gauge"
}

// panel is what the test reads of a dashboard's panel.
type panel struct {
	ID      int     `json:"id"`
	Type    string  `json:"type"`
	Title   string  `json:"title"`
	Panels  []panel `json:"panels"`
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

var (
	quotedText = regexp.MustCompile(`"[^"]*"`)
	matchers   = regexp.MustCompile(`\{([^}]*)\}`)
	ranges     = regexp.MustCompile(`\[[^\]]*\]`)
	groupings  = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
	word       = regexp.MustCompile(`[A-Za-z_:][A-Za-z0-9_:]*`)
	functions  = regexp.MustCompile(`\b[a-z_]+\s*\(`)
	legends    = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// names returns the metrics and the labels that a PromQL expression speaks of.
func names(expr string) (metrics, labels []string) {
	expr = quotedText.ReplaceAllString(expr, "")
	for _, part := range append(matchers.FindAllStringSubmatch(expr, -1), groupings.FindAllStringSubmatch(expr, -1)...) {
		labels = append(labels, word.FindAllString(part[1], -1)...)
	}
	for _, ignored := range []*regexp.Regexp{matchers, ranges, groupings, functions} {
		expr = ignored.ReplaceAllString(expr, " ")
	}
	return word.FindAllString(expr, -1), labels
}

func TestNamesOfAnExpression(t *testing.T) {
	metrics, labels := names(`1 - histogram_quantile(0.95, sum by (le, stage) (rate(a_bucket{instance=~"$i", x!=""}[$__rate_interval]))) / sum(b:c)`)
	if !slices.Equal(metrics, []string{"a_bucket", "b:c"}) || !slices.Equal(labels, []string{"instance", "x", "le", "stage"}) {
		t.Errorf("got %v and %v", metrics, labels)
	}
}

func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		SchemaVersion int     `json:"schemaVersion"`
		Panels        []panel `json:"panels"`
	}
	if err := json.Unmarshal(data, &dashboard); err != nil || dashboard.SchemaVersion == 0 {
		t.Fatalf("no dashboard: %v", err)
	}
	all, labels := allSeries(t)
	for _, given := range []string{"instance", "le"} { // by the scrape, by histograms
		labels[given] = true
	}
	ids, shown, rows := map[int]bool{}, map[string]bool{}, 0
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s: two panels have the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			rows++
		} else if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			metrics, used := names(target.Expr)
			for _, legend := range legends.FindAllStringSubmatch(target.LegendFormat, -1) {
				used = append(used, legend[1])
			}
			for _, metric := range metrics {
				name := baseName(metric, all)
				shown[name] = true
				if name == "" {
					t.Errorf("%s: there is no series %s", p.Title, metric)
				}
			}
			for _, label := range used {
				if !labels[label] {
					t.Errorf("%s: no series has the label %s", p.Title, label)
				}
			}
			if len(metrics) == 0 {
				t.Errorf("%s: no series in %s", p.Title, target.Expr)
			}
		}
	}
	for name := range all {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
	if rows < 7 {
		t.Errorf("only %d rows", rows)
	}
}

// baseName finds the series that a name of PromQL is of, "" when there is none.
func baseName(metric string, all map[string]series) string {
	if found, ok := all[metric]; ok && found.kind != "histogram" {
		return metric
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(metric, suffix); ok && all[name].kind == "histogram" {
			return name
		}
	}
	return ""
}

const (
	seriesBegin = "<!-- series: written by the program, kept by a test -->\n"
	seriesEnd   = "<!-- end of series -->\n"
)

// TestTheObservabilityPageIsTrue keeps the table of docs/observability.md. UPDATE_DOCS=1 writes it.
func TestTheObservabilityPageIsTrue(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "observability.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), seriesBegin)
	_, after, ended := strings.Cut(rest, seriesEnd)
	if !ok || !ended {
		t.Fatal("the page has no markers for the table")
	}
	want := before + seriesBegin + seriesTable(t) + seriesEnd + after
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Error("docs/observability.md does not list the series that there are: run UPDATE_DOCS=1 go test ./cmd/continuo -run ObservabilityPage")
	}
}

func seriesTable(t *testing.T) string {
	all, _ := allSeries(t)
	rows := slices.SortedFunc(maps.Values(all), func(a, b series) int { return cmp.Compare(a.name, b.name) })
	var table strings.Builder
	table.WriteString("| series | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", row.name, row.kind, row.labels, row.help)
	}
	return table.String()
}
