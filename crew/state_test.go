package crew_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

const pair = `
id: pair
max_rounds: 3
roles:
  - {role_name: a, display_name: A, connector: model, system_prompt: You are A.}
  - {role_name: b, display_name: B, connector: model, system_prompt: You are B.}
`

// table is a log of a crew's cycles, and what its newest state says.
type table struct {
	t       *testing.T
	crew    *crew.Crew
	state   *crew.State
	entries []continuo.Entry
}

func newTable(t *testing.T) *table {
	t.Helper()
	c, err := crew.Parse("pair.yaml", []byte(pair), crew.Known{Any: true})
	if err != nil {
		t.Fatal(err)
	}
	return &table{t: t, crew: c}
}

// put appends an entry to the log.
func (b *table) put(entry continuo.Entry) continuo.Entry {
	b.t.Helper()
	entry.Seq = int64(len(b.entries) + 1)
	b.entries = append(b.entries, entry)
	if err := b.state.Apply(&entry); err != nil {
		b.t.Fatal(err)
	}
	return entry
}

// begin begins a cycle.
func (b *table) begin(run string) {
	var before *crew.Snapshot
	if b.state != nil {
		before = &b.state.Now
	}
	first := b.crew.Begin(run, continuo.Text("Go."), nil, before)
	b.state = crew.NewState(b.crew, run)
	b.put(first)
}

// turn has the next role say something, seeing everything that there is.
func (b *table) turn(text string) string {
	b.t.Helper()
	step := b.state.Next()
	if step.Kind != crew.StepBegin {
		b.t.Fatalf("next is %+v", step)
	}
	cue := b.put(b.state.Cue(step))
	answer := continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text), Author: step.Role.Author()}
	b.state.Conclude(step, &answer, crew.Memory{Cursor: cue.Seq - 1, Session: "s"})
	b.put(answer)
	return step.Role.Name
}

// rest records what follows without a turn, to its end.
func (b *table) rest() (kinds []continuo.RunEventKind) {
	for b.state.Next().Kind == crew.StepRecord {
		for _, entry := range b.state.Record() {
			b.put(entry)
			kinds = append(kinds, entry.RunEvent.Kind)
		}
	}
	return kinds
}

func TestARoleForWhichNothingIsNewIsNotAsked(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	if got := []string{b.turn("One."), b.turn(".....")}; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("they spoke as %v", got)
	}
	if kinds := b.rest(); !slices.Equal(kinds, []continuo.RunEventKind{continuo.RunNodeFinished, continuo.RunEventFinished}) {
		t.Errorf("then came %v", kinds)
	}
	if pass := b.entries[len(b.entries)-2]; !pass.IsPlaceholder() || pass.Author.RoleName != "a" || pass.Hidden {
		t.Errorf("A's pass is %+v", pass)
	}
}

// What a role said last is no reason to ask it again, and what others say after its cursor is.
func TestAnswersAreNewsToTheOthersOnly(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	b.turn("One.")
	if b.state.HasUnread("a") || !b.state.HasUnread("b") {
		t.Errorf("news for a: %t, for b: %t", b.state.HasUnread("a"), b.state.HasUnread("b"))
	}
	b.put(b.state.MessageEntry(continuo.Text("Wait."), nil))
	if !b.state.HasUnread("a") {
		t.Error("a person's word is no news for a")
	}
}

// A role of another crew is nobody's own here, though it is called as one of this crew.
func TestANamesakesWordIsNews(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	b.turn("One.")
	author := &continuo.Author{RoleName: "a", DisplayName: "Anna"}
	b.put(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("Two."), Author: author, RunID: "r2", WorkflowID: continuo.CrewWorkflow("other")})
	if !b.state.HasUnread("a") {
		t.Error("what A of another crew said is no news for A")
	}
}

// What nobody can see is no news, and no answer.
func TestInvisibleWordsAreNoNews(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	b.turn(".....")
	b.turn("\u200b")
	if b.state.HasUnread("a") || b.state.Now.Role("b").Answers != 0 {
		t.Errorf("news for a: %t, and b stands %+v", b.state.HasUnread("a"), b.state.Now.Role("b"))
	}
}

func TestAStateGoesOverToTheNextCycle(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	b.turn("One.")
	b.put(b.state.Halt("enough"))
	if b.state.Next().Kind != crew.StepNone || b.state.Reason != "enough" {
		t.Errorf("a stopped cycle goes on: %+v", b.state)
	}
	b.begin("r2")
	a := b.state.Now.Role("a")
	if b.state.Now.Next != "b" || a.Answers != 1 || a.Cursor != 1 || a.Session != "s" {
		t.Errorf("the next cycle begins with %+v", b.state.Now)
	}
}

// A role that is gone is forgotten, a new one has seen nothing, and a pointer to nobody is the first role's.
func TestRolesComeAndGo(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	b.turn("One.")
	c, err := crew.Parse("pair.yaml", []byte(strings.ReplaceAll(pair, "role_name: b", "role_name: c")), crew.Known{Any: true})
	if err != nil {
		t.Fatal(err)
	}
	b.crew = c
	b.begin("r2")
	if now := b.state.Now; now.Next != "a" || now.Role("b") != nil || now.Role("c").Cursor != 0 || now.Role("a").Cursor != 1 {
		t.Errorf("the crew stands %+v", now)
	}
}

func TestAResetCanBeTakenBack(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	b.turn("One.")
	b.turn(".....")
	b.rest()
	before := b.state.Now.Clone()
	at := int64(len(b.entries))
	b.put(b.state.Reset(at))
	for _, role := range b.state.Now.Roles {
		if role.Cursor != at || role.Session != "" || role.Answers != 0 || b.state.Now.Since != at {
			t.Errorf("after a reset it stands %+v", b.state.Now)
		}
	}
	b.begin("r2")
	b.turn("Anew.")
	restored, ok := b.state.Restore()
	if !ok {
		t.Fatal("the reset cannot be taken back")
	}
	b.put(restored)
	if now := b.state.Now; now.Since != 0 || now.Role("a").Answers != before.Role("a").Answers+1 || now.Role("a").Cursor != at+2 || now.Role("b").Cursor != at || now.Role("a").Session != "" {
		t.Errorf("after it was taken back it stands %+v", now)
	}
	if _, ok := b.state.Restore(); ok {
		t.Error("it can be taken back twice")
	}
}

// Whatever is said, a cycle ends; the state is the same however often it is read; and nobody speaks out of turn.
func TestAnyCycleEnds(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		b := newTable(t)
		b.begin("r")
		var speakers []string
		for steps := 0; b.state.Run == continuo.RunRunning; steps++ {
			if steps > 100 {
				t.Fatalf("seed %d: the cycle does not end", seed)
			}
			step := b.state.Next()
			switch {
			case step.Kind == crew.StepRecord:
				for _, entry := range b.state.Record() {
					if entry.NodeID != "" {
						speakers = append(speakers, entry.NodeID)
					}
					b.put(entry)
				}
			case random.IntN(4) == 0:
				b.put(b.state.Cue(step))
				b.put(b.state.Fail(step, "broken"))
				speakers = append(speakers, step.Role.Name)
			case random.IntN(3) == 0:
				speakers = append(speakers, b.turn("....."))
			default:
				speakers = append(speakers, b.turn("Something."))
			}
		}
		for i, role := range speakers {
			if want := []string{"a", "b"}[i%2]; role != want {
				t.Fatalf("seed %d: turn %d was of %s: %v", seed, i, role, speakers)
			}
		}
		again := crew.NewState(b.crew, "r")
		for i := range b.entries {
			if err := again.Apply(&b.entries[i]); err != nil {
				t.Fatal(err)
			}
		}
		if again.Run != b.state.Run || again.Reason != b.state.Reason || again.Now.Next != b.state.Now.Next || !slices.Equal(again.Now.Roles, b.state.Now.Roles) {
			t.Fatalf("seed %d: read again it is %+v, before %+v", seed, again, b.state)
		}
	}
}

// The moderator's end of a cycle does not stand where a person speaks before it is recorded.
func TestAPersonsWordTakesTheModeratorsEndBack(t *testing.T) {
	b := newTable(t)
	c, err := crew.Parse("pair.yaml", []byte(strings.Replace(pair, "display_name: B,", "display_name: B, is_moderator: true,", 1)), crew.Known{Any: true})
	if err != nil {
		t.Fatal(err)
	}
	b.crew = c
	b.begin("r1")
	b.turn("One.")
	b.turn(".....")
	if step := b.state.Next(); step.Kind != crew.StepRecord {
		t.Fatalf("when the moderator has nothing to add, next is %+v", step)
	}
	b.put(b.state.MessageEntry(continuo.Text("Wait."), nil))
	if step := b.state.Next(); step.Kind != crew.StepBegin || step.Role.Name != "a" {
		t.Errorf("a person has spoken, and next is %+v", step)
	}
}

// A person who speaks when the crew is at its limit is answered all the same.
func TestAWordAtTheLimitIsAnswered(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	for range 6 {
		b.turn("On and on.")
	}
	b.put(b.state.MessageEntry(continuo.Text("Wait!"), nil))
	if step := b.state.Next(); step.Kind != crew.StepBegin {
		t.Errorf("next is %+v: %+v", step, b.state.Record())
	}
}

// Each event of a crew holds how it stands: that must not grow with each reset.
func TestResetsDoNotPileUp(t *testing.T) {
	b := newTable(t)
	size := func() int {
		encoded, err := json.Marshal(b.state.Now)
		if err != nil {
			t.Fatal(err)
		}
		return len(encoded)
	}
	b.begin("r")
	for range 500 {
		b.put(b.state.Reset(int64(len(b.entries))))
	}
	if n := size(); n > 16<<10 {
		t.Errorf("after 500 resets each event holds %d bytes", n)
	}
}

// What came after a reset counts when it is taken back, for a role too that came after it.
func TestARoleThatCameAfterAResetKeepsItsCount(t *testing.T) {
	b := newTable(t)
	b.begin("r1")
	b.turn("One.")
	b.put(b.state.Halt("x"))
	b.put(b.state.Reset(int64(len(b.entries))))
	three, err := crew.Parse("pair.yaml", []byte(pair+"  - {role_name: c, display_name: C, connector: model, system_prompt: You are C.}\n"), crew.Known{Any: true})
	if err != nil {
		t.Fatal(err)
	}
	b.crew = three
	b.begin("r2")
	for range 3 {
		b.turn("Two.")
	}
	entry, ok := b.state.Restore()
	if !ok {
		t.Fatal("it cannot be restored")
	}
	b.put(entry)
	for name, want := range map[string]int{"a": 2, "b": 1, "c": 1} {
		if got := b.state.Now.Role(name).Answers; got != want {
			t.Errorf("%s has %d answers, want %d", name, got, want)
		}
	}
}
