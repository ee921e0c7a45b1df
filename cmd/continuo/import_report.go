package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
)

// fileReport is the result of importing one file.
type fileReport struct {
	File     string       `json:"file"`
	New      int          `json:"new"`
	Existing int          `json:"existing"`
	Extended int          `json:"extended"` // existing ones whose source had more
	Messages int          `json:"messages"` // of the new conversations
	Repairs  []repairLine `json:"repairs"`  // of the new conversations
	Errors   []errorLine  `json:"errors"`
	Keys     []keyLine    `json:"keys,omitempty"`   // of new conversations whose id in the source cannot be a key
	Titles   []titleLine  `json:"titles,omitempty"` // of existing ones that keep a title which is not the source's
}

// keyLine is a conversation whose key differs from its name in the source.
type keyLine struct {
	Source   string `json:"source"`
	SourceID string `json:"source_id"`
	Key      string `json:"key"`
}

// titleLine is a conversation whose title differs from that of its source.
type titleLine struct {
	Source      string `json:"source"`
	Title       string `json:"title"`
	SourceTitle string `json:"source_title"`
}

func newFileReport(name string, results []*imported) fileReport {
	report := fileReport{File: name, Repairs: []repairLine{}, Errors: []errorLine{}}
	for _, one := range results {
		switch {
		case is(errNotDone, context.Canceled, continuo.ErrFull, continuo.ErrReadOnly, continuo.ErrClosed)(one.err): // reported once, by the whole import
		case one.err != nil:
			report.Errors = append(report.Errors, errorLine{Source: one.source, Error: plainText(one.err)})
		case one.result.Existed:
			report.Existing++
			if one.result.Added > 0 {
				report.Extended++
				report.Messages += one.result.Added
			}
			if one.result.SourceTitle != "" {
				report.Titles = append(report.Titles, titleLine{one.source, one.result.Conversation.Title, one.result.SourceTitle})
			}
		default:
			report.New++
			if one.result.SourceID != "" {
				report.Keys = append(report.Keys, keyLine{one.source, one.result.SourceID, one.result.Conversation.Key})
			}
			report.Messages += one.result.Entries
			for _, repair := range one.result.Repairs {
				report.Repairs = append(report.Repairs, repairLine{Source: one.source, Title: one.result.Conversation.Title, Repair: repair})
			}
		}
	}
	return report
}

// byRule counts repairs by rule, the most frequent first.
func (f *fileReport) byRule() string {
	counts := map[continuo.Rule]int{}
	for _, repair := range f.Repairs {
		counts[repair.Rule]++
	}
	rules := slices.SortedFunc(maps.Keys(counts), func(x, y continuo.Rule) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	words := make([]string, len(rules))
	for i, rule := range rules {
		words[i] = fmt.Sprintf("%s %d", rule, counts[rule])
	}
	return strings.Join(words, ", ")
}

// importReport is the report of a whole import.
type importReport struct {
	DryRun bool         `json:"dry_run"`
	Files  []fileReport `json:"files"`
}

// total adds up the files.
func (r *importReport) total() fileReport {
	total := fileReport{File: "all"}
	for _, file := range r.Files {
		total.New += file.New
		total.Existing += file.Existing
		total.Extended += file.Extended
		total.Keys = append(total.Keys, file.Keys...)
		total.Titles = append(total.Titles, file.Titles...)
		total.Messages += file.Messages
		total.Repairs = append(total.Repairs, file.Repairs...)
		total.Errors = append(total.Errors, file.Errors...)
	}
	return total
}

// broken is how many conversations could not be imported.
func (r *importReport) broken() int {
	total := r.total()
	return len(total.Errors)
}

// write prints the report, and the errors to standard error.
func (r *importReport) write(a *app, command *importCommand) error {
	total := r.total()
	r.errors(a)
	return a.show(command.JSON, r, func() {
		r.table(a, total)
		if command.Repairs {
			r.repairs(a)
		} else if len(total.Repairs) > 0 {
			a.note("%s; --repairs lists each: %s", term.Count(len(total.Repairs), "repair"), total.byRule())
		}
		if len(total.Keys) > 0 {
			a.note("%s with a key that is not the source's id: %q has the key %s.", term.Count(len(total.Keys), "conversation"), term.OneLine(total.Keys[0].SourceID, 60), total.Keys[0].Key)
		}
		if len(total.Titles) > 0 {
			a.note("%s there already with another title, which stays: %q, in the source %q.", term.Count(len(total.Titles), "conversation"), term.OneLine(total.Titles[0].Title, 60), term.OneLine(total.Titles[0].SourceTitle, 60))
		}
		switch {
		case r.DryRun:
			a.note("A dry run: nothing was added.")
		case total.New == 0 && total.Existing > 0 && total.Extended == 0 && len(total.Errors) == 0:
			a.note("Nothing was added: everything is there already.")
		}
	})
}

// shownErrors is how many errors of one file are shown, each with another cause: a file of another format has one in each line.
const shownErrors = 10

// particular matches the parts of an error's text in which errors with the same cause differ: numbers, quotations, and where
// JSON is broken.
const particular = `broken JSON: .*|'(\\.|[^'\\])*'|"(\\.|[^"\\])*"|[0-9]+`

// errors prints the errors of each file to standard error, one of each cause.
func (r *importReport) errors(a *app) {
	differs := regexp.MustCompile(particular)
	for _, file := range r.Files {
		var causes []string
		counts, first := map[string]int{}, map[string]string{}
		for _, broken := range file.Errors {
			cause := differs.ReplaceAllString(broken.Error, "…")
			if counts[cause]++; counts[cause] == 1 {
				causes, first[cause] = append(causes, cause), broken.Error
			}
		}
		for _, cause := range causes[:min(len(causes), shownErrors)] {
			text := first[cause]
			if more := counts[cause] - 1; more > 0 {
				text += fmt.Sprintf(" (and %s more like it; --json lists each)", term.Number(more))
			}
			report(a.console, errors.New(text))
		}
		if more := len(causes) - shownErrors; more > 0 {
			report(a.console, fmt.Errorf("%s: %s of errors; --json lists each", term.OneLine(file.File, 200), term.Count(more, "more kind")))
		}
	}
}

func (r *importReport) table(a *app, total fileReport) {
	t := a.table("file", ">new", ">there already", ">messages", ">repairs", ">broken")
	rows := r.Files
	if len(rows) != 1 {
		rows = append(rows[:len(rows):len(rows)], total)
	}
	for _, file := range rows {
		broken := term.Number(len(file.Errors))
		if len(file.Errors) > 0 {
			broken = a.paint.Red(broken)
		}
		t.Add(term.OneLine(file.File, 60), term.Number(file.New), term.Number(file.Existing), term.Number(file.Messages), term.Number(len(file.Repairs)), broken)
	}
	a.printTable(t, 0)
}

// repairs prints every repair.
func (r *importReport) repairs(a *app) {
	for _, file := range r.Files {
		if len(file.Repairs) == 0 {
			continue
		}
		a.print("\n%s  %s", a.paint.Bold(file.File), a.paint.Dim(file.byRule()))
		t := a.table("", ">")
		for _, repair := range file.Repairs {
			index := term.Number(repair.Index)
			if repair.Index < 0 {
				index = "–"
			}
			t.Add(a.paint.Dim(term.OneLine(repair.Source, 60)), index, a.paint.Yellow(string(repair.Rule)), term.OneLine(repair.Action, 200))
		}
		a.printTable(t, a.width)
	}
}
