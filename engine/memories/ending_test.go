package memories_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// dated is a memory whose clock a test sets.
type dated struct {
	t   *testing.T
	now time.Time
	log *continuo.Log
	m   *memories.Memories
}

// atWednesday begins on Wednesday, 15 May 2024.
func atWednesday(t *testing.T, store maintenance.Store) *dated {
	d := &dated{t: t, now: time.Date(2024, 5, 15, 9, 0, 0, 0, time.UTC)}
	d.log = continuo.NewLog(store, continuo.LogOptions{Now: func() time.Time { return d.now }})
	d.m = memories.New(d.log, nil, nil, nil, memories.Options{Enabled: true})
	return d
}

func (d *dated) day(day, hour int) { d.now = time.Date(2024, 5, day, hour, 0, 0, 0, time.UTC) }

func (d *dated) remember(statement memories.Statement) memories.Fact {
	d.t.Helper()
	fact, err := d.m.Remember(d.t.Context(), scope, statement)
	if err != nil {
		d.t.Fatal(err)
	}
	return fact
}

// say appends messages, and extracts what they state.
func (d *dated) say(texts ...string) continuo.Conversation {
	d.t.Helper()
	c := say(d.t, d.log, "", texts...)
	c.Kind = continuo.KindUser
	if err := d.m.Extract(d.t.Context(), scope, nobody); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// holds are the texts that are listed and recalled, the newest first.
func (d *dated) holds(all bool) (texts string) {
	d.t.Helper()
	facts, err := d.m.List(d.t.Context(), scope, memories.Query{All: all})
	if err != nil {
		d.t.Fatal(err)
	}
	for i := range facts {
		texts += facts[i].Text + "\n"
	}
	if all {
		return texts
	}
	recalled, err := d.m.Recall(d.t.Context(), scope, nobody, "Rome Oslo Lisbon answer", 10)
	for i := range recalled {
		if !strings.Contains(texts, recalled[i].Text) {
			d.t.Errorf("it recalls %q, which does not hold", recalled[i].Text)
		}
	}
	if err != nil || len(recalled) != len(facts) {
		d.t.Errorf("it recalls %d of %d facts: %v", len(recalled), len(facts), err)
	}
	return texts
}

// profile is the text of the profile that the next turn shows.
func (d *dated) profile(c continuo.Conversation) string {
	d.t.Helper()
	ref := d.m.Profile(d.t.Context(), c)
	if ref == nil {
		return ""
	}
	for entry, err := range d.log.Entries(d.t.Context(), ref.ConversationID, continuo.Range{From: ref.Seq, To: ref.Seq}) {
		if err != nil {
			d.t.Fatal(err)
		}
		return entry.Content.String()
	}
	return ""
}

// TestAFactEndsWithItsTime: what is said with an end is listed, recalled and in the profile until then; afterwards it is in the list of all
// facts, and what was there before holds as it did.
func TestAFactEndsWithItsTime(t *testing.T) {
	stores(t, func(t *testing.T, store maintenance.Store) {
		d := atWednesday(t, store)
		c := d.say("I live in Oslo.", "I live in Rome until Friday.", "Always answer in Latin until the end of the week.")
		during := "Always answer in Latin until the end of the week\nI live in Rome until Friday\nI live in Oslo\n"
		if got := d.holds(false); got != during {
			t.Errorf("on Wednesday there is\n%s", got)
		}
		if got := d.profile(c); !strings.Contains(got, "[identity, 2024-05-15 until 2024-05-17] I live in Rome") || !strings.Contains(got, "] I live in Oslo") {
			t.Errorf("the profile on Wednesday:\n%s", got)
		}
		d.day(17, 23)
		if got := d.holds(false); got != during {
			t.Errorf("on Friday evening there is\n%s", got)
		}
		shown := d.profile(c)
		d.day(18, 0)
		if got := d.profile(c); strings.Contains(got, "Rome") || !strings.Contains(got, "Latin") || !strings.Contains(got, "Oslo") {
			t.Errorf("the profile on Saturday:\n%s\nand on Friday:\n%s", got, shown)
		}
		if got := d.holds(false); got != "Always answer in Latin until the end of the week\nI live in Oslo\n" {
			t.Errorf("on Saturday there is\n%s", got)
		}
		d.day(20, 0)
		if got := d.profile(c); strings.Contains(got, "Latin") || !strings.Contains(got, "Oslo") {
			t.Errorf("the profile on Monday:\n%s", got)
		}
		if got := d.holds(true); got != during {
			t.Errorf("all facts are\n%s", got)
		}
		// The same words again are a fact of their own, with their own end.
		d.say("I live in Rome until Friday.")
		if got := d.holds(false); got != "I live in Rome until Friday\nI live in Oslo\n" {
			t.Errorf("said again there is\n%s", got)
		}
		d.day(25, 0)
		if got := d.holds(false); got != "I live in Oslo\n" {
			t.Errorf("after the second Friday there is\n%s", got)
		}
	})
}

// TestStatementsWithAnEnd: a caller says when a fact ends, or the text does; one that ends before it begins is refused. A fact that
// supersedes another one does so after its end, too.
func TestStatementsWithAnEnd(t *testing.T) {
	stores(t, func(t *testing.T, store maintenance.Store) {
		d := atWednesday(t, store)
		office := d.remember(memories.Statement{Text: "The office is closed", ValidTo: d.now.Add(time.Hour)})
		if !office.ValidTo.Equal(d.now.Add(time.Hour)) {
			t.Errorf("it ends at %s", office.ValidTo)
		}
		if named := d.remember(memories.Statement{Text: "I'm in Lisbon until Friday"}); !named.ValidTo.Equal(time.Date(2024, 5, 18, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("it ends at %s", named.ValidTo)
		}
		if later := d.remember(memories.Statement{Text: "I'm in Rome until Friday", ValidFrom: d.now.AddDate(0, 0, 7)}); !later.ValidTo.Equal(time.Date(2024, 5, 25, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("of the next week it ends at %s", later.ValidTo)
		}
		for _, end := range []time.Time{d.now, d.now.Add(-time.Second)} {
			if _, err := d.m.Remember(t.Context(), scope, memories.Statement{Text: "It is over", ValidTo: end}); !errors.Is(err, memories.ErrEndsBefore) {
				t.Errorf("an end at %s gives %v", end, err)
			}
		}
		home := d.remember(memories.Statement{Text: "I live in Oslo"})
		if _, err := d.m.Correct(t.Context(), scope, home.ID, memories.Statement{Text: "I live in Rome", ValidTo: d.now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		d.now = d.now.Add(2 * time.Hour)
		if got := d.holds(true); !strings.Contains(got, "Oslo") || !strings.Contains(got, "closed") {
			t.Errorf("all facts are\n%s", got)
		}
		facts, err := d.m.List(t.Context(), scope, memories.Query{})
		for i := range facts {
			if strings.Contains(facts[i].Text, "Oslo") || strings.Contains(facts[i].Text, "live in Rome") || strings.Contains(facts[i].Text, "closed") {
				t.Errorf("%q holds: %v", facts[i].Text, err)
			}
		}
	})
}

// TestEndsAreTakenElsewhere: an export has the ends, an import keeps them, and a later fact with the same words is not taken for one whose
// time is over. What is forgotten does not come back with its end.
func TestEndsAreTakenElsewhere(t *testing.T) {
	stores(t, func(t *testing.T, store maintenance.Store) {
		home := atWednesday(t, store)
		home.say("I live in Oslo.", "I live in Rome until Friday.")
		home.day(22, 9)
		home.say("I live in Rome until Friday.")
		export := exportOf(t, home.m, nobody)
		if len(export.Facts) != 3 {
			t.Fatalf("the export has %+v", export.Facts)
		}
		_, there := newMemories(storetest.NewMemory())
		if done := take(t, there, fileOf(t, export)); done.Added != 3 {
			t.Errorf("the import says %+v", done)
		}
		taken := exportOf(t, there, nobody)
		taken.Profile = export.Profile // that of another day
		same(t, taken, export)
		if done := take(t, home.m, fileOf(t, taken)); done.Added > 0 {
			t.Errorf("back home the import says %+v", done)
		}
		if err := home.m.Forget(t.Context(), scope, nobody, export.Facts[1].ID, false); err != nil {
			t.Fatal(err)
		}
		if got := home.holds(true); strings.Contains(got, "Rome") {
			t.Errorf("after the fact was forgotten there is\n%s", got)
		}
		if done := take(t, home.m, fileOf(t, export)); done.Added > 0 {
			t.Errorf("after it was forgotten the import says %+v", done)
		}
		broken := fileOf(t, export)
		broken.Facts[1].ValidTo = broken.Facts[1].ValidFrom
		_, empty := newMemories(storetest.NewMemory())
		var file *memories.FileError
		if _, err := empty.Import(t.Context(), scope, nobody, broken, false); !errors.As(err, &file) || !strings.Contains(file.Message, "ends before it begins") {
			t.Errorf("a fact that ends before it begins gives %v", err)
		}
	})
}
