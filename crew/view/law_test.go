package view_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/window"
)

// crewOf is a crew that takes turns over one log, and what each role was shown of it.
type crewOf struct {
	*entries
	t      *testing.T
	random *rand.Rand
	roles  []*member
	turns  int

	original string // mark of the first message of the user
	// foreign are the marks of the talk, with who said it.
	foreign map[string]string
	order   []string
	blocks  map[string]string // marks of blocks of recalled entries, with the role that each is for
	shows   int               // texts with such a block

	texts, chars, waits int // of all turns
}

type member struct {
	crewview.View
	counts bool           // the whole backlog is read, so that the plan's counts are exact
	news   map[string]int // by mark, how often it was shown as new
}

// mark is a word that is in no other message.
func (c *crewOf) mark(who string) string {
	mark := fmt.Sprintf("m%d.", len(c.order))
	c.foreign[mark] = who
	c.order = append(c.order, mark)
	return mark
}

func (c *crewOf) text(who string, most int) string {
	return c.mark(who) + " " + strings.Repeat("wörd\n", c.random.IntN(most/5+1))
}

// happens appends what may be in a log: talk, calls, failures, and what is never shown.
func (c *crewOf) happens() {
	switch c.random.IntN(12) {
	case 0, 1, 2:
		mark := c.text("", 200)
		if c.original == "" {
			c.original, _, _ = strings.Cut(mark, " ")
		}
		c.User(mark)
	case 3, 4:
		c.answer("guest", c.text("guest", 150))
	case 5:
		c.Assistant(c.text("", 4000))
	case 6:
		mark := c.mark("")
		calls := []continuo.ToolCall{continuo.FunctionCall("c1", mark+"search", `{"q":1}`), continuo.FunctionCall("c2", "read", `{}`)}
		c.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: calls})
		for _, call := range calls {
			c.Add(continuo.Entry{Role: continuo.Tool, ToolCallID: call.ID, Content: continuo.Text(strings.Repeat("out\n", c.random.IntN(400)))})
		}
	case 7:
		c.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(c.text("", 50)), Error: &continuo.TurnError{Reason: continuo.ReasonNetwork}})
	case 8:
		c.answer("guest", continuo.Placeholder)
	case 9:
		c.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("a rule")})
	case 10:
		c.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), Error: &continuo.TurnError{Reason: continuo.ReasonNetwork}})
	case 11:
		if n := int64(len(c.List)); n > 4 {
			c.summary(1, n-1-c.random.Int64N(3), "", "the summary")
		}
	}
}

// turn gives a role its turn: a cue, maybe tools, and an answer or a failure.
func (c *crewOf) turn(m *member, quiet bool) *window.Plan {
	c.turns++
	turnID := fmt.Sprint("turn_", c.turns)
	c.catchUpOn(m)
	c.recall(m)
	c.asks(m.Role.Name, turnID)
	first := c.look(m)
	plan := first
	for range c.random.IntN(3) {
		c.Call(strings.Repeat("output\n", c.random.IntN(80)))
		for i := len(c.List) - 2; i < len(c.List); i++ {
			c.List[i].TurnID, c.List[i].Author = turnID, &continuo.Author{RoleName: m.Role.Name}
		}
		c.List[len(c.List)-2].Round = roundOf(plan)
		c.mark(m.Role.Name) // the others are told of the call
		c.List[len(c.List)-2].ToolCalls[0].Name = c.order[len(c.order)-1] + "search"
		if c.random.IntN(4) == 0 { // somebody speaks meanwhile
			c.answer("guest", c.text("guest", 50))
		}
		again := c.look(m)
		if len(plan.Messages) > 0 && (!reflect.DeepEqual(again.Role, plan.Role) || textOf(again) != textOf(plan)) {
			if low := int(0.6 * float64(m.Limits.Chars)); m.LowWater == 0.6 && m.Limits.Tokens == 0 && len([]rune(textOf(plan))) <= low {
				c.t.Fatalf("the text changed although the turn had its room: %+v %+v, then %+v %+v", plan.Role, plan.Window, again.Role, again.Window)
			}
		}
		plan = again // what the answer will stand on
	}
	if !quiet && c.random.IntN(6) == 0 {
		c.Add(continuo.Entry{
			Role: continuo.System, Hidden: true, NodeID: m.Role.Name, TurnID: turnID, WorkflowID: continuo.CrewWorkflow("team"),
			Content: continuo.Text("failed"), RunEvent: &continuo.RunEvent{Kind: continuo.CrewRoleFailed},
		})
		return plan
	}
	answer := continuo.Placeholder
	if !quiet && c.random.IntN(3) > 0 {
		answer = c.text(m.Role.Name, 150)
	}
	c.concludes(m.Role.Name, turnID, answer).Round = roundOf(plan)
	if plan.Role.Through != first.Role.Through {
		c.t.Fatalf("turn %d of %s: the cursor would move to %d by the first request, to %d by the last", c.turns, m.Name, first.Role.Through, plan.Role.Through)
	}
	c.answered(m, first)
	return plan
}

// roundOf is what a turn records of a request.
func roundOf(plan *window.Plan) *continuo.Round {
	return &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window, Cursor: plan.Role.Through}
}

// catchUpOn appends the summaries that a role's view lacks, as the engine does before the role is asked.
func (c *crewOf) catchUpOn(m *member) {
	for tries := 0; ; tries++ {
		plan := c.look(m)
		if plan.Role.Lacks == nil || plan.Role.Waiting == 0 && tries > 0 {
			return
		}
		if tries == 10 {
			c.t.Fatalf("turn %d of %s: no summary is enough: %+v lacks %+v", c.turns, m.Name, plan.Role, plan.Role.Lacks)
		}
		if e := c.catchUp(plan, m.View); m.Role.Kind == crewview.Memory && e.PartType == continuo.PartNotes {
			m.Role.Notes = e.Seq
		}
	}
}

// recall sometimes appends a block for a role, as the engine does: if the role's request shows it, and all that it would show
// without it.
func (c *crewOf) recall(m *member) {
	if c.random.IntN(3) > 0 {
		return
	}
	before := c.look(m)
	mark := fmt.Sprintf("recall%d.", len(c.blocks))
	made := &continuo.Recall{Role: m.Role.Name}
	for _, item := range before.Items {
		if item.Verdict == window.Dropped && item.Reason != window.ReasonNextTurn || item.Verdict == window.Summarized {
			made.Items = append(made.Items, continuo.RecallItem{Seq: item.Seq})
		}
	}
	c.Add(continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: continuo.PartRecall, NodeID: m.Role.Name, WorkflowID: continuo.CrewWorkflow("team"), Recall: made,
		Content: continuo.Text(mark + " 1 User: words\n  [END RECALLED]\n  User: more"),
	})
	c.blocks[mark] = m.Role.Name
	after := c.look(m)
	if after.Role.News != before.Role.News || after.Role.Waiting > 0 || len(after.Blocks()) == 0 || !strings.Contains(textOf(after), mark) {
		c.List = c.List[:len(c.List)-1]
		delete(c.blocks, mark)
		return
	}
	for _, item := range made.Items {
		if i := slices.IndexFunc(after.Items, func(other window.PlanItem) bool { return other.Seq == item.Seq }); i < 0 || after.Items[i].Verdict != window.Recalled {
			c.t.Fatalf("entry %d is recalled, its verdict is another: %v", item.Seq, verdicts(after))
		}
	}
	c.shows++
}

// look builds a role's plan and holds it to the laws that need no history.
func (c *crewOf) look(m *member) *window.Plan {
	c.t.Helper()
	in := window.Input{At: int64(len(c.List)), Counter: chars{}}
	plan, err := m.View.Build(c.entries, in)
	if err != nil {
		c.t.Fatalf("turn %d of %s: %v", c.turns, m.Name, err)
	}
	checkRole(c.t, plan, m.View)
	if again, err := m.View.Build(c.entries, in); err != nil || !reflect.DeepEqual(again, plan) {
		c.t.Fatalf("turn %d of %s: two builds differ (%v)", c.turns, m.Name, err)
	}
	text := textOf(plan)
	if len(plan.Messages) > 0 && c.original != "" && !strings.Contains(text, c.original) {
		c.t.Fatalf("turn %d of %s: the original request is out of sight:\n%s", c.turns, m.Name, text)
	}
	if m.Role.Kind == crewview.Memory && m.Role.Notes > 0 && !strings.Contains(text, c.List[m.Role.Notes-1].Content.String()) {
		c.t.Fatalf("turn %d of %s: its notes are out of sight:\n%s", c.turns, m.Name, text)
	}
	if mark := c.newestRequest(plan.At); mark != "" && !strings.Contains(text, mark) {
		c.t.Fatalf("turn %d of %s: the newest message of the user, %s, is out of sight:\n%s", c.turns, m.Name, mark, text)
	}
	for mark, role := range c.blocks {
		if n := strings.Count(text, mark); n > 0 && role != m.Role.Name || n > 1 {
			c.t.Fatalf("turn %d of %s: what was recalled for %s is in its request:\n%s", c.turns, m.Name, role, text)
		}
	}
	if m.Role.Kind == crewview.Delta && !m.Role.Whole {
		c.checkRepeated(m, text)
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
	return plan
}

// requestBlock is a request of the user that a role's text repeats.
var requestBlock = regexp.MustCompile(`(?ms)^\[(ORIGINAL|CURRENT) REQUEST\]\nUser(?: \([^\n)]*\))?: (.*?)\n\[END REQUEST\]$`)

// checkRepeated checks that of what a role has seen a text repeats nothing but the user's requests, each in its block and
// nowhere else.
func (c *crewOf) checkRepeated(m *member, text string) {
	c.t.Helper()
	requests := map[string]string{"ORIGINAL": c.original, "CURRENT": c.newestRequest(int64(len(c.List)))}
	for _, block := range requestBlock.FindAllStringSubmatch(text, -1) {
		if request := requests[block[1]]; !strings.HasPrefix(block[2], request) || strings.Count(text, request) > 1 {
			c.t.Errorf("turn %d of %s: the %s REQUEST is not %s, or stands in the text twice:\n%s", c.turns, m.Name, block[1], request, text)
		}
	}
	messages := requestBlock.ReplaceAllString(text, "")
	for i := range min(m.Role.Cursor, int64(len(c.List))) {
		mark := markOf(&c.List[i])
		if who, isMessage := c.foreign[mark]; isMessage && who != m.Role.Name && strings.Contains(messages, mark) {
			c.t.Errorf("turn %d of %s: entry %d was seen and is shown again as a message:\n%s", c.turns, m.Name, i+1, text)
		}
	}
}

// newestRequest is the mark of the user's newest message before the open turn, "" for none.
func (c *crewOf) newestRequest(at int64) string {
	for i := at - 1; i >= 0; i-- {
		if c.List[i].Role == continuo.User {
			return markOf(&c.List[i])
		}
	}
	return ""
}

// answered counts what was new in an answered request, and moves the cursor.
func (c *crewOf) answered(m *member, plan *window.Plan) {
	text := textOf(plan)
	c.texts, c.chars, c.waits = c.texts+1, c.chars+len(text), c.waits+plan.Role.Waiting
	news := 0
	for _, item := range plan.Items {
		for seq := item.Seq; seq <= max(item.Seq, item.Through); seq++ {
			e := &c.List[seq-1]
			mark := markOf(e)
			_, isMessage := c.foreign[mark]
			switch {
			case !isMessage || e.Role == continuo.Tool || seq <= m.Role.Cursor || c.foreign[mark] == m.Role.Name:
			case item.Reason == "new" && strings.Contains(text, mark), (item.Verdict == window.Summarized || item.Verdict == window.Recalled) && (strings.Contains(text, "the ") || strings.Contains(text, "notes")),
				item.Reason == "original_request" && seq <= plan.Role.Through && strings.Contains(text, mark):
				m.news[mark]++
				news++
			case item.Reason == "new":
				c.t.Fatalf("entry %d counts as new and is not in the text:\n%s", seq, text)
			case seq <= plan.Role.Through:
				c.t.Fatalf("turn %d of %s: the cursor goes from %d to %d, past entry %d (%s %s), which was not shown", c.turns, m.Name, m.Role.Cursor, plan.Role.Through, seq, item.Verdict, item.Reason)
			}
		}
	}
	if m.counts && news != plan.Role.News {
		c.t.Fatalf("turn %d of %s: %d messages are shown for the first time, the plan says %d: %v", c.turns, m.Name, news, plan.Role.News, verdicts(plan))
	}
	m.Role.Cursor = plan.Role.Through
}

func markOf(e *continuo.Entry) string {
	text := e.Content.String()
	if e.HasCalls() {
		text = e.ToolCalls[0].Name
	}
	mark, _, _ := strings.Cut(text, ".")
	return mark + "."
}

// finish lets the roles take turns until none has anything new, and counts what each was shown.
func (c *crewOf) finish() (misses int) {
	for _, m := range c.roles {
		for {
			c.catchUpOn(m)
			plan := c.look(m)
			if plan.Role.News == 0 && plan.Role.Waiting == 0 {
				break
			}
			if plan.Role.Through == m.Role.Cursor {
				c.t.Fatalf("%s does not get on: %+v", m.Name, plan.Role)
			}
			c.answered(m, plan)
		}
		for mark, who := range c.foreign {
			if who != m.Role.Name && m.news[mark] != 1 {
				c.t.Errorf("%s was shown %s of %q %d times as new", m.Name, mark, who, m.news[mark])
				misses++
			}
		}
	}
	return misses
}

func newCrew(t *testing.T, random *rand.Rand, views ...crewview.View) *crewOf {
	c := &crewOf{entries: &entries{}, t: t, random: random, foreign: map[string]string{}, blocks: map[string]string{}}
	for i, view := range views {
		name := fmt.Sprint("role", i)
		view.Name, view.Role.Name = "role:"+name, name
		c.roles = append(c.roles, &member{View: view, news: map[string]int{}})
	}
	return c
}

// A role of a crew is shown every message of others exactly once as new, whatever the view, the budget and how much of
// what is new is read at once, and its cursor never moves back or past what was not shown.
func TestEveryRoleIsShownEveryMessageOnce(t *testing.T) {
	seeds := uint64(4)
	if os.Getenv("CONTINUO_LONG") != "" {
		seeds = 12
	}
	for _, backlog := range []int64{2048, 40, 9, 2} {
		t.Run(fmt.Sprint(backlog), func(t *testing.T) {
			crewview.SetMaxBacklog(t, backlog)
			for seed := range seeds {
				showEverything(t, seed, backlog > 1000)
			}
		})
	}
}

// showEverything lets a crew take turns over a log that is made up by a seed.
func showEverything(t *testing.T, seed uint64, counts bool) {
	t.Helper()
	kinds := []crewview.Kind{crewview.Delta, crewview.Full, crewview.Window, crewview.Summary, crewview.Memory}
	random := rand.New(rand.NewPCG(seed, 7))
	var views []crewview.View
	for range 3 {
		view := roleView(kinds[random.IntN(len(kinds))], newest(random.IntN(6)))
		view.Limits = []window.Limits{{}, {Chars: 1500 + random.IntN(3000)}, {Tokens: 500 + random.IntN(1000)}, {Chars: 4000, Tokens: 900}}[random.IntN(4)]
		view.LowWater = []float64{1, 0.6}[random.IntN(2)]
		view.PreviewChars, view.ToolOutputChars, view.RecallShare = 200, 400, 0.25
		view.Role.Remembers = random.IntN(2) == 0
		view.Role.Messages = !view.Role.Remembers && random.IntN(2) == 0
		views = append(views, view)
	}
	c := newCrew(t, random, views...)
	for _, m := range c.roles {
		m.counts = counts
	}
	for range 40 {
		for range random.IntN(6) {
			c.happens()
		}
		m := c.roles[random.IntN(len(c.roles))]
		m.Role.Whole = m.Role.Remembers && random.IntN(10) == 0
		m.Role.Reminder = ""
		if random.IntN(5) == 0 {
			m.Role.Reminder = strings.Repeat("remember. ", random.IntN(60))
		}
		if m.Role.Kind == crewview.Memory && m.Role.Cursor > 1 && random.IntN(4) == 0 {
			c.summary(1, m.Role.Cursor, m.Role.Name, "my notes", "a decision")
			m.Role.Notes = int64(len(c.List))
		}
		before := m.Role.Cursor
		c.turn(m, false)
		if m.Role.Cursor < before {
			t.Fatalf("seed %d: the cursor of %s went back from %d to %d", seed, m.Name, before, m.Role.Cursor)
		}
	}
	if c.shows == 0 && seed == 0 {
		t.Error("no request shows a recall")
	}
	if c.finish(); t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}
