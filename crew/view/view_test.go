package view_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/window"
)

// roleView is a view of the role "builder" without limits.
func roleView(kind crewview.Kind, change ...func(*crewview.View)) crewview.View {
	view := crewview.View{View: window.View{Name: "role:builder", LowWater: 1}, Role: crewview.Role{Name: "builder", Kind: kind}}
	for _, c := range change {
		c(&view)
	}
	return view
}

func cursorAt(seq int64) func(*crewview.View) {
	return func(v *crewview.View) { v.Role.Cursor = seq }
}

func charsAtMost(n int) func(*crewview.View) {
	return func(v *crewview.View) { v.Limits.Chars = n }
}

func newest(n int) func(*crewview.View) {
	return func(v *crewview.View) { v.Role.Newest = n }
}

func remembers(v *crewview.View) { v.Role.Remembers = true }

// answer appends what a role says.
func (l *entries) answer(role, text string) *continuo.Entry {
	return l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text), Author: &continuo.Author{RoleName: role, DisplayName: "The " + role}})
}

// asks appends the cue that begins a turn of a role.
func (l *entries) asks(role, turnID string) *continuo.Entry {
	return l.Add(continuo.Entry{
		Role: continuo.System, Hidden: true, Content: continuo.Text("your turn"), NodeID: role, TurnID: turnID,
		WorkflowID: continuo.CrewWorkflow("team"), RunEvent: &continuo.RunEvent{Kind: continuo.RunNodeBegan},
	})
}

// concludes appends a role's answer with the event of its turn's end.
func (l *entries) concludes(role, turnID, text string) *continuo.Entry {
	e := l.answer(role, text)
	e.NodeID, e.TurnID, e.WorkflowID, e.RunEvent = role, turnID, continuo.CrewWorkflow("team"), &continuo.RunEvent{Kind: continuo.RunNodeFinished}
	return e
}

func (l *entries) summary(from, through int64, role, text string, decisions ...string) *continuo.Entry {
	part := continuo.PartSummary
	if role != "" {
		part = continuo.PartNotes
	}
	return l.Add(continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: part, Content: continuo.Text(text),
		Summary: &continuo.Summary{From: from, Through: through, Role: role, Decisions: decisions, By: "test"},
	})
}

// shown builds a plan for a role and returns its text.
func (l *entries) shown(t *testing.T, view crewview.View) (string, *window.Plan) {
	t.Helper()
	plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}})
	if err != nil {
		t.Fatal(err)
	}
	checkRole(t, plan, view)
	return textOf(plan), plan
}

// textOf is what a plan shows before the role's own turn.
func textOf(plan *window.Plan) string {
	var texts []string
	for _, m := range plan.Messages {
		if len(m.ToolCalls) > 0 || m.Role == continuo.Tool || strings.HasPrefix(m.Content.String(), "[MORE] Earlier tool calls") {
			break
		}
		texts = append(texts, m.Content.String())
	}
	return strings.Join(texts, "\n\n")
}

// catchUp appends what a plan lacks, as the engine does before a role is asked, and returns it; nil where it lacks nothing.
func (l *entries) catchUp(plan *window.Plan, view crewview.View) *continuo.Entry {
	lack := plan.Role.Lacks
	if lack == nil {
		return nil
	}
	if view.Role.Kind == crewview.Summary {
		return l.summary(lack.From, lack.Through, "", "the summary")
	}
	e := l.summary(lack.From, lack.Through, view.Role.Name, "the notes")
	if view.Role.Kind != crewview.Memory {
		e.PartType, e.Content, e.Summary.Messages = continuo.PartCatchUp, continuo.Text("the catch-up"), lack.Messages
	}
	return e
}

// checkRole holds every plan of a role to what holds for all.
func checkRole(t *testing.T, plan *window.Plan, view crewview.View) {
	t.Helper()
	totals, role := plan.Totals, plan.Role
	if l := view.Limits; l.Chars > 0 && totals.Chars > l.Chars || l.Tokens > 0 && totals.Tokens > l.Tokens {
		t.Errorf("the plan takes %d chars, %d tokens; the limits are %+v", totals.Chars, totals.Tokens, l)
	}
	if totals.Kept+totals.Summarized+totals.Recalled+totals.Dropped+totals.Excluded != totals.Entries {
		t.Errorf("totals do not add up: %+v", totals)
	}
	next := int64(1)
	for _, item := range plan.Items {
		if item.Seq != next {
			t.Errorf("items leave a gap or overlap at seq %d: found %d", next, item.Seq)
		}
		next = max(item.Seq, item.Through) + 1
	}
	if next != plan.At+1 {
		t.Errorf("items end at %d, the plan at %d", next-1, plan.At)
	}
	if role.Cursor != view.Role.Cursor || role.Through < role.Cursor || role.Through > max(plan.At, role.Cursor) {
		t.Errorf("the cursor goes from %d to %d in a log of %d", role.Cursor, role.Through, plan.At)
	}
	last := int64(0)
	for i, m := range plan.Messages {
		if i == 0 && !view.Role.Messages && (m.Role != continuo.User || m.Seq < 1 || m.Entry != nil) {
			t.Errorf("the first message is no text: %+v", m)
		}
		if m.Seq > 0 && m.Seq <= last {
			t.Errorf("message %d has seq %d, one before it %d", i, m.Seq, last)
		}
		last = max(last, m.Seq)
		if own := m.Entry != nil && m.Entry.Author != nil && m.Entry.Author.RoleName == view.Role.Name; m.Role == continuo.Assistant && !own && len(m.ToolCalls) == 0 {
			t.Errorf("the words of another stand as the assistant's: %+v", m)
		}
	}
	if n := len(plan.Messages); n > 0 && plan.Messages[n-1].Role == continuo.Assistant && len(plan.Messages[n-1].ToolCalls) == 0 && plan.Cycle == 0 {
		t.Errorf("the last message is the assistant's: %+v", plan.Messages[n-1])
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("shown:\n%s\n---- want:\n%s", got, want)
	}
}

// verdicts lists the plan's items as "1 kept new" or "2-5 dropped next_turn".
func verdicts(plan *window.Plan) []string {
	var list []string
	for _, item := range plan.Items {
		seqs := fmt.Sprint(item.Seq)
		if item.Through > 0 {
			seqs = fmt.Sprintf("%d-%d", item.Seq, item.Through)
		}
		list = append(list, fmt.Sprintf("%s %s %s", seqs, item.Verdict, item.Reason))
	}
	return list
}

func expectVerdicts(t *testing.T, plan *window.Plan, want ...string) {
	t.Helper()
	if got := verdicts(plan); !slices.Equal(got, want) {
		t.Errorf("verdicts:\n%s\n---- want:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The four examples of the pipeline's document.
func TestTheDocumentsExamples(t *testing.T) {
	t.Run("first role", func(t *testing.T) {
		l := &entries{}
		l.User("Build a Flask app")
		text, plan := l.shown(t, roleView(crewview.Delta))
		expect(t, text, "User: Build a Flask app")
		if plan.Role.News != 1 {
			t.Errorf("%+v", plan.Role)
		}
	})
	t.Run("second role", func(t *testing.T) {
		l := &entries{}
		l.Add(continuo.Entry{
			Role: continuo.Assistant, Author: &continuo.Author{RoleName: "backend", DisplayName: "Backend Dev"},
			Content: continuo.Text("I'll structure the app with blueprints..."),
		})
		text, _ := l.shown(t, roleView(crewview.Delta))
		expect(t, text, "Assistant (Backend Dev): I'll structure the app with blueprints...")
	})
	t.Run("placeholders", func(t *testing.T) {
		l := &entries{}
		l.answer("a", continuo.Placeholder)
		l.answer("b", " "+continuo.Placeholder+"\n")
		text, plan := l.shown(t, roleView(crewview.Delta))
		expect(t, text, "")
		expectVerdicts(t, plan, "1-2 excluded placeholder")
		if len(plan.Messages) != 0 || plan.Role.News != 0 || plan.Role.Through != 2 {
			t.Errorf("%+v", plan.Role)
		}
	})
	t.Run("reminder", func(t *testing.T) {
		l := &entries{}
		l.User("Can you refactor this?")
		text, _ := l.shown(t, roleView(crewview.Delta, func(v *crewview.View) { v.Role.Reminder = "You are a Backend Developer..." }))
		expect(t, text, "User: Can you refactor this?\n\n[SYSTEM REMINDER]\nYou are a Backend Developer...\n[END REMINDER]")
	})
}

// history is a log of a request and a few answers; builder has seen it up to 3.
func history() *entries {
	l := &entries{}
	l.User("the request")                     // 1
	l.answer("planner", "a plan")             // 2
	l.asks("builder", "turn_1")               // 3
	l.concludes("builder", "turn_1", "built") // 4
	l.answer("reviewer", "looks good")        // 5
	l.User("and now the tests")               // 6
	l.answer("planner", "plan two")           // 7
	return l
}

func TestKindsOfViews(t *testing.T) {
	request := "[ORIGINAL REQUEST]\nUser: the request\n[END REQUEST]\n\n"
	current := "[CURRENT REQUEST]\nUser: and now the tests\n[END REQUEST]"
	news := "Assistant (The reviewer): looks good\n\nUser: and now the tests\n\nAssistant (The planner): plan two"
	seen := "User: the request\n\nAssistant (The planner): a plan\n\n"
	for name, c := range map[string]struct {
		view crewview.View
		want string
	}{
		"delta":                    {roleView(crewview.Delta, cursorAt(3), remembers), request + news},
		"delta, without memory":    {roleView(crewview.Delta, cursorAt(3)), request + "Assistant (The builder): built\n\n" + news},
		"full":                     {roleView(crewview.Full, cursorAt(3)), seen + "Assistant (The builder): built\n\n" + news},
		"full, with memory":        {roleView(crewview.Full, cursorAt(3), remembers), seen + news},
		"window of what is new":    {roleView(crewview.Window, cursorAt(3), remembers), request + "[MORE] 1 earlier message is left out.\n\n" + news},
		"window of five":           {roleView(crewview.Window, cursorAt(3), newest(5)), request + "Assistant (The planner): a plan\n\nAssistant (The builder): built\n\n" + news},
		"window of one, all seen":  {roleView(crewview.Window, cursorAt(7), newest(1)), request + "[MORE] 4 earlier messages are left out.\n\nAssistant (The planner): plan two\n\n" + current},
		"summary without one":      {roleView(crewview.Summary, cursorAt(3)), seen + "Assistant (The builder): built\n\n" + news},
		"memory without notes":     {roleView(crewview.Memory, cursorAt(3), remembers), request + news},
		"memory, nothing to go by": {roleView(crewview.Memory, cursorAt(3)), seen + "Assistant (The builder): built\n\n" + news},
		"lost its memory":          {roleView(crewview.Delta, cursorAt(3), remembers, func(v *crewview.View) { v.Role.Whole = true }), seen + "Assistant (The builder): built\n\n" + news},
		"delta, nothing new":       {roleView(crewview.Delta, cursorAt(7), remembers), request + current},
		"delta, nothing kept":      {roleView(crewview.Delta, cursorAt(7)), request + current},
		"after a reset":            {roleView(crewview.Full, func(v *crewview.View) { v.Role.Since = 4 }), news},
		"after a reset, all seen":  {roleView(crewview.Delta, cursorAt(7), remembers, func(v *crewview.View) { v.Role.Since = 4 }), "[ORIGINAL REQUEST]\nUser: and now the tests\n[END REQUEST]"},
	} {
		t.Run(name, func(t *testing.T) {
			text, _ := history().shown(t, c.view)
			expect(t, text, c.want)
		})
	}
}

func TestVerdictsOfRoles(t *testing.T) {
	_, plan := history().shown(t, roleView(crewview.Delta, cursorAt(3), remembers, func(v *crewview.View) { v.Role.Since = 1 }))
	expectVerdicts(t, plan, "1 excluded before_reset", "2-3 excluded seen", "4 excluded own_message", "5 kept new", "6 kept new", "7 kept new")
	_, plan = history().shown(t, roleView(crewview.Full, cursorAt(3)))
	expectVerdicts(t, plan, "1 kept seen", "2 kept seen", "3 excluded ui_only", "4 kept seen", "5 kept new", "6 kept new", "7 kept new")
	if want := (window.RolePlan{Name: "builder", Kind: "full", Cursor: 3, Through: 7, News: 3, Before: 1, Entries: plan.Role.Entries}); !reflect.DeepEqual(*plan.Role, want) {
		t.Errorf("%+v", plan.Role)
	}
}

func TestASummaryReplacesOldMessages(t *testing.T) {
	l := &entries{}
	for i := range 10 {
		l.User(fmt.Sprintf("message %d", i+1))
	}
	l.summary(1, 6, "", "they said\nUser: hello")
	l.User("message 12")
	text, plan := l.shown(t, roleView(crewview.Summary, cursorAt(9), newest(2)))
	expect(t, text, "[ORIGINAL REQUEST]\nUser: message 1\n[END REQUEST]\n\n[CONTEXT SUMMARY]\nthey said\n\\User: hello\n[RECENT]\n\n"+
		"User: message 7\n\nUser: message 8\n\nUser: message 9\n\nUser: message 10\n\nUser: message 12")
	expectVerdicts(t, plan, "1 kept original_request", "2-6 summarized summary", "7 kept seen", "8 kept seen", "9 kept seen", "10 kept new", "11 kept summary", "12 kept new")

	// What the summary stands for and is new stands whole all the same, as long as it fits.
	_, plan = l.shown(t, roleView(crewview.Summary, cursorAt(2), newest(7)))
	expectVerdicts(t, plan, "1 kept original_request", "2 summarized summary", "3 kept new", "4 kept new", "5 kept new", "6 kept new", "7 kept new", "8 kept new", "9 kept new", "10 kept new", "11 kept summary", "12 kept new")
	if plan.Role.News != 9 || plan.Role.Through != 12 || plan.Role.Waiting != 0 {
		t.Errorf("%+v", plan.Role)
	}
	// A summary of what a reset took away is none, nor is a redacted one.
	text, _ = l.shown(t, roleView(crewview.Summary, func(v *crewview.View) { v.Role.Since = 2 }))
	if strings.Contains(text, "they said") || !strings.HasPrefix(text, "User: message 3\n") {
		t.Errorf("after a reset: %s", text)
	}
	l.List[10].Redacted = &continuo.Redaction{}
	if text, _ = l.shown(t, roleView(crewview.Summary)); strings.Contains(text, "[RECENT]") {
		t.Errorf("with a redacted summary: %s", text)
	}
}

func TestNotesPrecedeNewerMessages(t *testing.T) {
	l := &entries{}
	for i := range 6 {
		l.User(fmt.Sprintf("message %d", i+1))
	}
	l.summary(1, 4, "builder", "what I know", "use Go", "no\ncgo")
	l.summary(1, 4, "reviewer", "what others know")
	l.User("message 9")
	notes := "[NOTES]\nwhat I know\nKey decisions:\n- use Go\n- no cgo\n[END NOTES]\n\n"
	view := roleView(crewview.Memory, cursorAt(5), remembers, func(v *crewview.View) { v.Role.Notes = 7 })
	text, plan := l.shown(t, view)
	expect(t, text, "[ORIGINAL REQUEST]\nUser: message 1\n[END REQUEST]\n\n"+notes+"User: message 5\n\nUser: message 6\n\nUser: message 9")
	expectVerdicts(t, plan, "1 kept original_request", "2-4 summarized notes", "5 kept seen", "6 kept new", "7 kept notes", "8 excluded ui_only", "9 kept new")
	view.Role.Cursor = 2 // notes never stand for what was not shown
	if text, plan = l.shown(t, view); !strings.Contains(text, notes+"User: message 3\n") || plan.Role.News != 5 {
		t.Errorf("%+v: %s", plan.Role, text)
	}
	view.Role.Whole = true
	if text, _ = l.shown(t, view); !strings.HasPrefix(text, notes+"User: message 1\n\nUser: message 2") {
		t.Errorf("whole: %s", text)
	}
	view.Role.Whole = false
	if plan, err := view.Build(l, window.Input{At: 6, Counter: chars{}}); err != nil || strings.Contains(texts(plan)[0], "[NOTES]") {
		t.Errorf("notes that were made later: %v, %q", err, texts(plan))
	}
	view.Role.Notes = 8 // another role's
	if text, _ = l.shown(t, view); strings.Contains(text, "[NOTES]") {
		t.Errorf("another role's notes: %s", text)
	}
}

func TestWhatIsReported(t *testing.T) {
	image := continuo.Part{Type: "image_url", Raw: []byte(`{"type":"image_url","image_url":{"url":"x"}}`)}
	file := continuo.Part{Type: "file", Raw: []byte(`{"type":"file"}`)}
	l := &entries{}
	l.Add(continuo.Entry{Role: continuo.User, Name: "ann", Content: continuo.Parts(continuo.TextPart("look"), image, file)})
	l.Add(continuo.Entry{
		Role: continuo.Assistant, Content: continuo.Text("searching"), Author: &continuo.Author{RoleName: "planner"},
		ToolCalls: []continuo.ToolCall{continuo.FunctionCall("1", "search", `{"q":"x"}`), continuo.FunctionCall("2", "read", `{"path":"`+strings.Repeat("y", 300)+`"}`)},
	})
	l.Add(continuo.Entry{Role: continuo.Tool, ToolCallID: "1", Content: continuo.Text("\nUser: found\nmore")})
	l.Add(continuo.Entry{Role: continuo.Tool, ToolCallID: "2", PartType: continuo.PartToolError, Outcome: "no such file", Content: continuo.Text("x")})
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("half an ans"), Error: &continuo.TurnError{Reason: continuo.ReasonTimeout}})
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), Error: &continuo.TurnError{Reason: continuo.ReasonTimeout}})
	l.Add(continuo.Entry{Role: continuo.User, Content: continuo.Text(continuo.RedactedText), Redacted: &continuo.Redaction{}})
	l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("be nice")})
	l.Add(continuo.Entry{Role: continuo.System, PartType: continuo.PartStep, Content: continuo.Text("go on")})
	l.Add(continuo.Entry{Role: continuo.Assistant, Hidden: true, Content: continuo.Text("for people")})
	l.Add(continuo.Entry{Role: continuo.User, Content: continuo.Text(" \n")})
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(""), Reasoning: &continuo.Reasoning{Text: "hm"}})
	text, plan := l.shown(t, roleView(crewview.Full))
	expect(t, text, "User (ann): look\n[image]\n[file]\n\nAssistant (planner): searching\ncalled search({\"q\":\"x\"}) -> User: found\n"+
		"called read({\"path\":\""+strings.Repeat("y", 110)+"…) -> failed: no such file\n\nAssistant: half an ans\n[broke off: timeout]\n\nUser: [redacted]")
	expectVerdicts(t, plan, "1 kept new", "2 truncated new", "3 truncated new", "4 truncated new", "5 kept new", "6 excluded failed_answer", "7 kept new",
		"8-9 excluded system_prompt", "10 excluded ui_only", "11 excluded empty", "12 excluded thinking")
	if plan.Role.News != 4 || plan.Role.Through != 12 {
		t.Errorf("%+v", plan.Role)
	}
}

func TestCallsAreShownOnOneLineEach(t *testing.T) {
	l := &entries{}
	var calls []continuo.ToolCall
	for i := range 10 {
		calls = append(calls, continuo.FunctionCall(fmt.Sprint(i), "read", "{}"))
	}
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: calls})
	results := []continuo.Entry{
		{Content: continuo.Text("")},
		{PartType: continuo.PartInterrupted, Content: continuo.Text("may have been done")},
		{Outcome: "Read x", Content: continuo.Text("long")},
		large("3"),
		{Redacted: &continuo.Redaction{}, Content: continuo.Text(continuo.RedactedText)},
	}
	for i := range calls {
		result := continuo.Entry{Content: continuo.Text("ok\nmore")}
		if i < len(results) {
			result = results[i]
		}
		result.Role, result.ToolCallID = continuo.Tool, calls[i].ID
		l.Add(result)
	}
	text, _ := l.shown(t, roleView(crewview.Full))
	lines := []string{"(no output)", "interrupted: may have been done", "Read x", "head 56789", "[redacted]", "ok", "ok", "ok"}
	expect(t, text, "Assistant: called read({}) -> "+strings.Join(lines, "\ncalled read({}) -> ")+"\nand 2 more calls")
}

func TestAWorkflowsStepIsNoTurnOfARole(t *testing.T) {
	l := &entries{}
	l.User("the request")
	l.asks("builder", "turn_1").WorkflowID = "a-workflow"
	l.User("more")
	text, _ := l.shown(t, roleView(crewview.Full))
	expect(t, text, "User: the request\n\nUser: more")
}

func TestImpossibleViewsOfRolesAreRefused(t *testing.T) {
	for _, change := range []func(*crewview.View){
		func(v *crewview.View) { v.Role.Kind = "all" }, func(v *crewview.View) { v.Role.Name = "" }, cursorAt(-1), newest(-1),
	} {
		if _, err := roleView(crewview.Full, change).Build(history(), window.Input{At: 7, Counter: chars{}}); !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAnEmptyConversationShowsNothing(t *testing.T) {
	for at := range int64(3) {
		l := history()
		l.List = l.List[:at]
		plan, err := roleView(crewview.Full, func(v *crewview.View) { v.Role.Since, v.Role.Reminder = 5, "be good" }).Build(l, window.Input{At: at, Counter: chars{}})
		if err != nil || len(plan.Messages) != 0 || plan.Role.News != 0 || len(plan.Items) > 1 {
			t.Errorf("at %d: %v, %+v", at, err, plan)
		}
	}
}

func TestARoleIsShownTheNewestWithoutAtAndNothingThatIsNotThere(t *testing.T) {
	view := roleView(crewview.Full)
	plan, err := view.Build(history(), window.Input{})
	if err != nil || plan.At != 7 || plan.Totals.Tokens == 0 {
		t.Errorf("without at and counter: %+v, %v", plan, err)
	}
	if _, err := view.Build(history(), window.Input{At: 8}); !errors.Is(err, continuo.ErrBadRange) {
		t.Errorf("at 8 of 7: %v", err)
	}
	if err := view.CheckFits(window.Input{}, continuo.Text("hello")); err != nil {
		t.Error(err)
	}
}
