package memory_test

import (
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
)

func TestWhatARuleFinds(t *testing.T) {
	for text, want := range map[string]struct {
		kind continuo.FactKind
		fact string // "" for none
	}{
		"Always include the source when I ask about news.":             {continuo.FactInstruction, "Always include the source when I ask about news"},
		"I prefer tea, so can you suggest some?":                       {continuo.FactPreference, "I prefer tea"},
		"There are many phones, but I prefer small ones.":              {continuo.FactPreference, "I prefer small ones"},
		"My name is Ada Lovelace.":                                     {continuo.FactIdentity, "My name is Ada Lovelace"},
		"I’ve decided to use Redis.":                                   {continuo.FactDecision, "I’ve decided to use Redis"},
		"My sister Ann lives in Rome.":                                 {continuo.FactRelation, "My sister Ann lives in Rome"},
		"I've never written a Flask route.":                            {continuo.FactEvent, "I've never written a Flask route"},
		"Do you live in Oslo?":                                         {},
		"If I lived in Oslo, I would ski.":                             {},
		"He said: \"I live in Oslo\".":                                 {},
		"> I live in Oslo":                                             {},
		"```\nI live in Oslo\n```":                                     {},
		"Never mind.":                                                  {},
		"I'm worried that I have lost the key.":                        {},
		"I won't meet the deadline.":                                   {},
		"In the future, I'm aiming to work on projects of all kinds.":  {continuo.FactEvent, "I'm aiming to work on projects of all kinds"},
		"How do I make sure my generator is only making small labels?": {},
	} {
		t.Run(text, func(t *testing.T) {
			entry := continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
			found := memory.Extract(&entry)
			switch {
			case want.fact == "" && len(found) == 0:
			case len(found) != 1 || found[0].Kind != want.kind || found[0].Text != want.fact || !continuo.Quotes(&entry, found[0].Quote):
				t.Errorf("found %+v, want %+v", found, want)
			}
			for _, role := range []continuo.Role{continuo.Assistant, continuo.System, continuo.Tool} {
				entry.Role = role
				if found := memory.Extract(&entry); len(found) > 0 {
					t.Errorf("a %s entry gave %+v", role, found)
				}
			}
		})
	}
}

func TestNewerFactsSupersedeAndDenialsContradict(t *testing.T) {
	log := []continuo.Entry{}
	for i, text := range []string{"I live in Oslo.", "I moved to Bergen.", "I've never met Kelly at any book club or library event.", "I met Kelly at the library book club event.", "I've set my reading goal at 10 books by March.", "I've extended my reading goal to 12 books by March."} {
		entry := continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
		for _, c := range memory.Extract(&entry) {
			at := continuo.Entry{}.CreatedAt.AddDate(2024, 0, i)
			log = append(log, continuo.Entry{Seq: int64(i + 1), CreatedAt: at, Content: continuo.Text(c.Text), Fact: &continuo.Fact{
				Kind: c.Kind, Subject: c.Subject, Attribute: c.Attribute, ValidFrom: at, Supersedes: memory.Updated(memory.Fold(log), c, at),
			}})
		}
	}
	known := memory.Fold(log)
	if len(known) != 6 {
		t.Fatalf("%d facts: %+v", len(known), known)
	}
	if known[0].SupersededBy != 2 || known[0].ValidTo != known[1].ValidFrom || !known[1].Holds(known[1].ValidFrom) {
		t.Errorf("the move: %+v", known[:2])
	}
	if len(known[2].Contradicts) != 1 || known[2].Contradicts[0] != 4 || known[3].Contradicts[0] != 3 {
		t.Errorf("the denial: %+v", known[2:4])
	}
	if known[4].SupersededBy != 6 {
		t.Errorf("the goal: %+v", known[4:])
	}
	log[1].Redacted = &continuo.Redaction{}
	if again := memory.Fold(log); again[0].SupersededBy != 0 {
		t.Errorf("a redacted fact still supersedes: %+v", again[0])
	}
}

// TestEachClauseStatesItsOwnFact reads sentences with several statements, and with parts that are none.
func TestEachClauseStatesItsOwnFact(t *testing.T) {
	for text, want := range map[string][]string{
		"My name is Ada and I like tea.":                                        {"identity name: My name is Ada", "preference : I like tea"},
		"My timezone is CET, and my favourite teas are green ones.":             {"identity timezone: My timezone is CET", "preference favourite teas: my favourite teas are green ones"},
		"I live in Oslo, I work as a nurse and I'm allergic to nuts.":           {"identity home: I live in Oslo", "identity occupation: I work as a nurse", "preference : I'm allergic to nuts"},
		"I’m vegan, but I love cooking – I’ve written a cookbook.":              {"preference : I’m vegan", "preference : I love cooking", "event : I’ve written a cookbook"},
		"I love my wife and my dog.":                                            {"preference : I love my wife and my dog"},
		"My wife and I moved to Rome.":                                          {"identity home: I moved to Rome"},
		"I live in Oslo and might move to Rome.":                                {"identity home: I live in Oslo and might move to Rome"},
		"I live in Oslo, but I might move to Rome.":                             {"identity home: I live in Oslo"},
		"I wish I had a dog and I lived in Rome.":                               nil,
		"I lived in Oslo for two years.":                                        {"event : I lived in Oslo for two years"},
		"I used to work as a nurse.":                                            {"event : I used to work as a nurse"},
		"My sister Ann lives in Rome.":                                          {"relation : My sister Ann lives in Rome"},
		"My boss is Mrs Hall.":                                                  {"relation : My boss is Mrs Hall"},
		"The day was long, and me and my team had a blast.":                     {"event : my team had a blast"},
		"In this example, I'm creating a new security group.":                   nil,
		"I work at Acme and I work as a nurse.":                                 {"identity employer: I work at Acme", "identity occupation: I work as a nurse"},
		"I live in Oslo, and I live near the park.":                             {"identity home: I live in Oslo", "identity : I live near the park"},
		"I moved into a bigger flat.":                                           {"event : I moved into a bigger flat"},
		"We moved to Postgres.":                                                 {"event : We moved to Postgres"},
		"I've moved back to Bergen.":                                            {"identity home: I've moved back to Bergen"},
		"I bought a car and I love it.":                                         {"event : I bought a car and I love it"},
		"I prefer tea, and my sister Ann lives in Rome, so what can we drink?":  {"preference : I prefer tea", "relation : my sister Ann lives in Rome"},
		"My budget is $50 and I've moved to Bergen, always answer in Norwegian": {"other budget: My budget is $50", "identity home: I've moved to Bergen", "instruction : always answer in Norwegian"},
	} {
		t.Run(text, func(t *testing.T) {
			entry := continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
			var got []string
			for _, fact := range memory.Extract(&entry) {
				if !continuo.Quotes(&entry, fact.Quote) || fact.Quote != fact.Text {
					t.Errorf("%+v does not stand in the message", fact)
				}
				got = append(got, string(fact.Kind)+" "+fact.Attribute+": "+fact.Text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

func TestFactsWithoutACommonWordDoNotRelate(t *testing.T) {
	known := memory.Known{Text: "my timezone is CET", Fact: continuo.Fact{Kind: continuo.FactIdentity, Subject: "user"}}
	if memory.Relates("what is my name", &known) || !memory.Relates("which timezone is it?", &known) {
		t.Error("is is a word in common")
	}
}

// TestStatementsThatNoTimeOrdersContradict: two homes at one time contradict each other and both hold, until a later one
// replaces them.
func TestStatementsThatNoTimeOrdersContradict(t *testing.T) {
	day := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	home := func(seq int64, text string, at time.Time) continuo.Entry {
		return continuo.Entry{Seq: seq, CreatedAt: at, Content: continuo.Text(text), Fact: &continuo.Fact{Kind: continuo.FactIdentity, Subject: "user", Attribute: "home", ValidFrom: at}}
	}
	log := []continuo.Entry{home(1, "I live in Oslo", day), home(2, "I live in Rome", day)}
	for i, k := range memory.Fold(log) {
		if !k.Holds(day) || !slices.Equal(k.Contradicts, []int64{int64(2 - i)}) {
			t.Errorf("%q: holds %v, contradicts %v", k.Text, k.Holds(day), k.Contradicts)
		}
	}
	later := day.AddDate(0, 1, 0)
	known := memory.Fold(append(log, home(3, "I live in Bergen", later)))
	if !known[2].Holds(later) || known[1].SupersededBy != 3 || !known[1].ValidTo.Equal(later) || !known[1].ValidFrom.Equal(day) {
		t.Errorf("after a later statement: %+v", known)
	}
	if known[0].Holds(later) || !known[0].ValidTo.Equal(later) {
		t.Errorf("the other one still holds: %+v", known[0])
	}
}
