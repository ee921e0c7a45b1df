package memory_test

import (
	"testing"

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
		"I'm choosing a phone, but I prefer small ones.":               {continuo.FactPreference, "I prefer small ones"},
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
	if known[0].SupersededBy != 2 || known[0].ValidTo != known[1].ValidFrom || !known[1].Holds() {
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
