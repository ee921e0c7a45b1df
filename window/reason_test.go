package window_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// itemOf returns the verdict on one entry, which may be in a range.
func itemOf(t *testing.T, plan *window.Plan, seq int64) window.PlanItem {
	t.Helper()
	at := slices.IndexFunc(plan.Items, func(item window.PlanItem) bool {
		return item.Seq <= seq && seq <= max(item.Seq, item.Through)
	})
	if at < 0 {
		t.Fatalf("no verdict on entry %d", seq)
	}
	return plan.Items[at]
}

func wantItem(t *testing.T, plan *window.Plan, seq int64, verdict window.Verdict, reason string) {
	t.Helper()
	if item := itemOf(t, plan, seq); item.Verdict != verdict || item.Reason != reason {
		t.Errorf("entry %d is %s: %s, not %s: %s", seq, item.Verdict, item.Reason, verdict, reason)
	}
}

// Two limits can decide together: one where the window starts, another how its outputs are shown.
func TestOutputsNameTheLimitThatCutThem(t *testing.T) {
	l := &entries{}
	for range 6 {
		l.User("question")
		l.Assistant("answer")
	}
	l.User("look")
	l.Call(strings.Repeat("x", 3000))
	l.Call(strings.Repeat("y", 9000))
	l.Call(strings.Repeat("z", 3000))
	l.Assistant("done")
	l.User("next")
	view := preset(t, window.Codex, window.Limits{Messages: 10, Chars: 5000})
	plan := l.build(t, view)
	wantItem(t, plan, 1, window.Dropped, "over_messages")
	wantItem(t, plan, 15, window.Previewed, "over_chars")
	wantItem(t, plan, 17, window.Previewed, "over_output_limit")
}

// A move that keeps the start and only cuts outputs does not change why older entries were dropped.
func TestDroppedEntriesKeepTheirReason(t *testing.T) {
	l := &entries{}
	l.User("question")
	l.Call(slices.Repeat([]string{"result"}, 20)...)
	l.Assistant("answer")
	l.User("look")
	view := preset(t, window.Codex, window.Limits{Messages: 20, Chars: 5000})
	view.LowWater, view.Priced, view.ByUse = 0.6, false, false
	dropped := l.build(t, view)
	wantItem(t, dropped, 1, window.Dropped, "over_messages")
	record := func(output string, plan *window.Plan) {
		l.Call(output)
		l.List[len(l.List)-2].Round = &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window}
	}
	record(strings.Repeat("x", 2400), dropped)
	output := int64(len(l.List))
	whole := l.build(t, view)
	wantItem(t, whole, output, window.Kept, "open_group")
	record(strings.Repeat("y", 2600), whole)
	cut := l.build(t, view)
	if !cut.Moved || cut.Window.Start != whole.Window.Start {
		t.Fatalf("the window moved from %+v to %+v", whole.Window, cut.Window)
	}
	record("found", cut)
	later := l.build(t, view)
	if later.Moved {
		t.Fatalf("the window moved from %+v to %+v", cut.Window, later.Window)
	}
	for _, plan := range []*window.Plan{cut, later} {
		wantItem(t, plan, 1, window.Dropped, "over_messages")
		wantItem(t, plan, output, window.Truncated, "over_chars")
	}
}

// docs/api.md explains the reasons that the constants define, in their order, with the first verdict of their comments.
func TestTheTableOfReasonsIsComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var constants [][2]string // reason, first verdict
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		first := regexp.MustCompile(`^Reason\w+: (\w+)`).FindStringSubmatch(spec.Doc.Text())
		if first == nil {
			t.Fatalf("the comment of %s has no verdict", spec.Names[0].Name)
		}
		constants = append(constants, [2]string{value, first[1]})
		return true
	})
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| reason | verdict | meaning | changed by |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][2]string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		verdict, _, _ := strings.Cut(cells[1], ", ")
		rows = append(rows, [2]string{strings.Trim(cells[0], "| `"), verdict})
	}
	if !slices.Equal(rows, constants) {
		t.Errorf("docs/api.md has %q\nreason.go has  %q", rows, constants)
	}
}
