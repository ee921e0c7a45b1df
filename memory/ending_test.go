package memory_test

import (
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
)

// TestEnding reads statements of Wednesday, 15 May 2024.
func TestEnding(t *testing.T) {
	said := time.Date(2024, 5, 15, 16, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{ // the last day; "" for no end
		"I'm in Rome until Friday":                                 "2024-05-17",
		"I’m away until the end of the week":                       "2024-05-19",
		"Always answer in German until tomorrow":                   "2024-05-16",
		"I work from Lisbon till Sunday evening":                   "2024-05-19",
		"I live in Rome until this Saturday":                       "2024-05-18",
		"I'm on holidays through May 20":                           "2024-05-20",
		"I'm on call until 2024-06-02":                             "2024-06-02",
		"We use the old API until June 3rd, 2025":                  "2025-06-03",
		"We use the old API until the 3rd of June":                 "2024-06-03",
		"I stay with my mother until 4 March":                      "2025-03-04",
		"I have a rental car until the end of this month":          "2024-05-31",
		"My budget is $50 until the end of the year":               "2024-12-31",
		"Never call me before noon, only for today":                "2024-05-15",
		"I prefer short answers, just for this week":               "2024-05-19",
		"I'm only here today":                                      "",
		"I want tea only today.":                                   "2024-05-15",
		"I need answers in French, today only":                     "2024-05-15",
		"I'm in Berlin for the next two weeks":                     "2024-05-29",
		"I'm in Berlin for the next 3 days":                        "2024-05-18",
		"We stick to Go for the next couple of months":             "2024-07-15",
		"I'm not available until Friday":                           "2024-05-16", // on Friday
		"I can't eat solid food until 20 May":                      "2024-05-19",
		"I don't drink alcohol through Sunday":                     "2024-05-19", // with it
		"I'm in Rome until Wednesday":                              "",           // today, or in a week
		"I'm in Rome until next Friday":                            "",           // of this week, or of the next
		"I'm in Rome until June":                                   "",           // with June, or without
		"I'm in Rome until I find a flat":                          "",
		"I'm here until 5":                                         "",
		"I live in Rome until May 40":                              "",
		"I worked there until Friday":                              "", // an event that is over
		"I was in Rome until Friday":                               "",
		"I had leave until Friday":                                 "",
		"My sale ended, we extended it until Friday":               "", // an event
		"I work until Friday every week":                           "", // and again
		"I usually work until Friday":                              "",
		"On weekdays I work until tomorrow morning":                "",
		"I only today decided to use Redis":                        "",
		"I need the report by Friday":                              "", // a deadline
		"I'm starting on Friday":                                   "",
		"Please walk me through May 20 in the diary":               "",
		"I drove through Sunday Creek":                             "",
		"I use the beta until 2024-05-01":                          "", // that was before
		"I'm thinking of shoes, but is the offer on until Friday?": "2024-05-17",
		"I want to know if the offer is on until Friday":           "",
		"I prefer the shop which is open until Friday":             "",
		"I like the until-loop of bash":                            "",
		"":                                                         "",
	} {
		t.Run(text, func(t *testing.T) {
			kind := continuo.FactOther
			if found := memory.Extract(&continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}); len(found) > 0 {
				kind = found[0].Kind
			}
			end := memory.Ending(kind, text, said)
			if got := lastDay(end); got != want {
				t.Errorf("%s: until %q, want %q", kind, got, want)
			}
			if !end.IsZero() && !end.Equal(end.Truncate(24*time.Hour)) {
				t.Errorf("it ends at %s, not with a day", end)
			}
		})
	}
	if end := memory.Ending(continuo.FactOther, "I'm in Rome until Friday", time.Time{}); !end.IsZero() {
		t.Errorf("said at no time, it ends at %s", end)
	}
}

func lastDay(end time.Time) string {
	if end.IsZero() {
		return ""
	}
	return memory.LastDay(end)
}

// TestTheEndOfTheClauseCounts: one sentence states what ends and what does not.
func TestTheEndOfTheClauseCounts(t *testing.T) {
	entry := continuo.Entry{Role: continuo.User, CreatedAt: time.Date(2024, 5, 15, 8, 0, 0, 0, time.UTC), Content: continuo.Text("I live in Oslo, but I'm staying in Rome until Friday.")}
	found := memory.Extract(&entry)
	if len(found) != 2 || !found[0].ValidTo.IsZero() || lastDay(found[1].ValidTo) != "2024-05-17" {
		t.Errorf("found %+v", found)
	}
}

// TestWhatEndsReplacesOnlyWhatEnds: of one attribute, a statement with an end and one without hold together. A later one without an end
// replaces both.
func TestWhatEndsReplacesOnlyWhatEnds(t *testing.T) {
	day := time.Date(2024, 5, 15, 0, 0, 0, 0, time.UTC)
	var log []continuo.Entry
	state := func(text string, days, holds int) {
		at := day.AddDate(0, 0, days)
		fact := &continuo.Fact{Kind: continuo.FactIdentity, Subject: "user", Attribute: "home", ValidFrom: at}
		if holds > 0 {
			fact.ValidTo = at.AddDate(0, 0, holds)
		}
		log = append(log, continuo.Entry{Seq: int64(len(log) + 1), CreatedAt: at, Content: continuo.Text(text), Fact: fact})
	}
	holding := func(days int) (seqs string) {
		known := memory.Fold(log)
		for i := range known {
			if known[i].Holds(day.AddDate(0, 0, days)) {
				seqs += string(rune('0' + known[i].Seq))
			}
			if len(known[i].Contradicts) > 0 {
				t.Errorf("%q contradicts %v", known[i].Text, known[i].Contradicts)
			}
		}
		return seqs
	}
	state("I live in Oslo", 0, 0)
	state("I live in Rome", 0, 5)
	if got := holding(4) + " " + holding(5); got != "12 1" {
		t.Errorf("before and after the end, %s hold", got)
	}
	state("I live in Pisa", 1, 2)
	if got := holding(2) + " " + holding(3); got != "13 1" {
		t.Errorf("after a later statement with an end, %s hold", got)
	}
	if rome := memory.Fold(log)[1]; rome.SupersededBy != 3 || !rome.ValidTo.Equal(day.AddDate(0, 0, 1)) {
		t.Errorf("it was replaced by %d and held until %s", rome.SupersededBy, rome.ValidTo)
	}
	state("I live in Bergen", 2, 0)
	if got := holding(2); got != "4" {
		t.Errorf("after a later statement without an end, %s hold", got)
	}
	log[3].Redacted = &continuo.Redaction{}
	if got := holding(2); got != "13" {
		t.Errorf("without that statement, %s hold", got)
	}
}
