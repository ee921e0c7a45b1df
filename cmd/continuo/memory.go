package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/memory"
)

type memoryCommand struct {
	List     listMemoryCommand   `cmd:"" help:"List facts, the newest first, or those that have to do with a text."`
	Show     showFactCommand     `cmd:"" help:"Show a fact, its sources and its history."`
	Remember rememberCommand     `cmd:"" help:"Add a fact."`
	Forget   forgetCommand       `cmd:"" help:"Remove facts, or everything that is known, permanently."`
	Correct  correctCommand      `cmd:"" help:"Add a fact that supersedes another one."`
	Derive   deriveMemoryCommand `cmd:"" help:"Add patterns that several messages have in common."`
	Export   exportMemoryCommand `cmd:"" help:"Write everything that is known: JSON, JSON Lines or Markdown."`
	Import   importMemoryCommand `cmd:"" help:"Add the facts of an export."`
}

// memoryOwner are the flags that say whose memory is meant.
type memoryOwner struct {
	User   string `placeholder:"USER" help:"The memory of this user. Default: of the conversations without a user."`
	Shared bool   `help:"The memory of the project, which all of its users share."`
}

func (o *memoryOwner) owner() (memories.Owner, error) {
	if o.Shared && o.User != "" {
		return memories.Owner{}, usage("--shared: a memory is a user's or the project's: leave out --user")
	}
	if err := continuo.CheckUserID(o.User); err != nil {
		return memories.Owner{}, usage("--user: %v", err)
	}
	return memories.Owner{UserID: o.User, Project: o.Shared}, nil
}

type listMemoryCommand struct {
	memoryOwner
	Query []string          `arg:"" optional:"" help:"Only facts that have to do with this text, the most likely ones first."`
	Kind  continuo.FactKind `enum:"identity,preference,instruction,decision,event,relation,other," default:"" placeholder:"KIND" help:"Only facts of this kind: identity, preference, instruction, decision, event, relation, other."`
	All   bool              `help:"Also facts that others have superseded, and those whose time is over."`
	Limit int               `default:"100" help:"How many facts to show at most."`
	JSON  bool              `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (listMemoryCommand) Help() string {
	return `Lists what is known of a user: each fact with its number, kind and day, and the words. What was said since the last turn is read first, where memory.enabled allows it.

Examples:

    continuo memory list
    continuo memory list where do I live
    continuo memory list --user ada@example.com --kind preference
    continuo memory list --all --json | jq -r '.data[].text'`
}

// Run prints the list.
func (c *listMemoryCommand) Run(ctx context.Context, a *app, w *services) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return usage("--limit %d: give 1 or more", c.Limit)
	}
	var facts []memories.Fact
	if len(c.Query) > 0 {
		facts, err = w.engine.Memories.Recall(ctx, w.scope(), owner, strings.Join(c.Query, " "), c.Limit)
	} else {
		facts, err = w.engine.Memories.List(ctx, w.scope(), memories.Query{Owner: owner, Kind: c.Kind, All: c.All, Limit: c.Limit})
	}
	if err != nil {
		return err
	}
	return a.show(c.JSON, api.AllOf(facts), func() {
		if len(facts) == 0 {
			a.note("No facts. Facts are taken from what you say, or added with continuo memory remember TEXT.")
			return
		}
		table := a.table("fact", "kind", "said", "text")
		for i := range facts {
			table.Add(strconv.FormatInt(facts[i].ID, 10), string(facts[i].Kind), facts[i].ValidFrom.Local().Format(time.DateOnly), factText(&facts[i]))
		}
		a.printTable(table, a.width)
	})
}

// maxFactText bounds the text of a fact in a list, in cells.
const maxFactText = 160

func factText(fact *memories.Fact) string {
	text := term.OneLine(fact.Text, maxFactText)
	switch {
	case fact.SupersededBy != 0:
		text += fmt.Sprintf(" (superseded by %d)", fact.SupersededBy)
	case len(fact.Contradicts) > 0:
		text += fmt.Sprintf(" (contradicts %s)", strings.Trim(fmt.Sprint(fact.Contradicts), "[]"))
	case !fact.ValidTo.IsZero():
		text += fmt.Sprintf(" (until %s)", memory.LastDay(fact.ValidTo))
	}
	return text
}

type showFactCommand struct {
	memoryOwner
	Fact int64 `arg:"" help:"The number of the fact."`
	JSON bool  `help:"Write JSON."`
}

func (showFactCommand) Help() string {
	return `Shows one fact: since when it holds, who found it, the words that it was taken from, and the facts of the same subject and attribute.

Examples:

    continuo memory show 12`
}

// Run prints the fact.
func (c *showFactCommand) Run(ctx context.Context, a *app, w *services) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	shown, err := w.engine.Memories.Get(ctx, w.scope(), owner, c.Fact)
	if err != nil {
		return factError(err)
	}
	return a.show(c.JSON, shown, func() {
		table := term.NewTable(a.paint)
		table.Fact("text", term.Clean(shown.Text))
		table.Fact("kind", string(shown.Kind))
		table.Fact("about", term.OneLine(shown.Subject, maxFactText))
		if shown.Attribute != "" {
			table.Fact("attribute", term.OneLine(shown.Attribute, maxFactText))
		}
		table.Fact("since", term.Time(shown.ValidFrom))
		if !shown.ValidTo.IsZero() {
			table.Fact("until", term.Time(shown.ValidTo))
		}
		if shown.SupersededBy != 0 {
			table.Fact("superseded by", strconv.FormatInt(shown.SupersededBy, 10))
		}
		if len(shown.Contradicts) > 0 {
			table.Fact("contradicts", strings.Trim(fmt.Sprint(shown.Contradicts), "[]"))
		}
		table.Fact("confidence", strconv.FormatFloat(shown.Confidence, 'g', -1, 64))
		table.Fact("by", term.OneLine(shown.By, maxFactText))
		for _, source := range shown.Sources {
			table.Fact("source", fmt.Sprintf("%s %d: %q", source.ConversationID, source.Seq, term.OneLine(source.Quote, maxFactText)))
		}
		if shown.Imported != nil {
			for _, source := range shown.Imported.Sources {
				table.Fact("imported from", fmt.Sprintf("%s %d: %q", term.OneLine(source.ConversationID, maxFactText), source.Seq, term.OneLine(source.Quote, maxFactText)))
			}
		}
		for i := range shown.History {
			table.Fact("history", fmt.Sprintf("%d, %s: %s", shown.History[i].ID, shown.History[i].ValidFrom.Local().Format(time.DateOnly), factText(&shown.History[i])))
		}
		for _, line := range table.Lines(0) {
			a.print("%s", line)
		}
	})
}

// factFlags are the flags of commands that add a fact.
type factFlags struct {
	Kind      continuo.FactKind `enum:"identity,preference,instruction,decision,event,relation,other," default:"" placeholder:"KIND" help:"What it is: identity, preference, instruction, decision, event, relation, other. Default: found by the rules, else other; of a correction, the old fact's."`
	Subject   string            `placeholder:"TEXT" help:"Whom or what it is about. Default: user."`
	Attribute string            `placeholder:"TEXT" help:"What it says of the subject, such as home: a newer fact of the same subject and attribute supersedes it."`
	Until     string            `placeholder:"DATE" help:"The last day, in UTC, on which it holds, as 2026-07-31. Default: the day that the text names, such as until Friday; else it has no end."`
	JSON      bool              `help:"Write JSON."`
}

func (f *factFlags) statement(owner memories.Owner, text []string) (memories.Statement, error) {
	statement := memories.Statement{Owner: owner, Text: strings.Join(text, " "), Kind: f.Kind, Subject: f.Subject, Attribute: f.Attribute}
	if f.Until == "" {
		return statement, nil
	}
	day, err := time.Parse(time.DateOnly, f.Until)
	if err != nil {
		return statement, usage("--until %q: give a date, such as 2026-07-31", f.Until)
	}
	statement.ValidTo = day.AddDate(0, 0, 1)
	return statement, nil
}

type rememberCommand struct {
	memoryOwner
	factFlags
	Text []string `arg:"" help:"The fact."`
}

func (rememberCommand) Help() string {
	return `Adds a fact that you state; its number goes to stdout.

Examples:

    continuo memory remember I prefer short answers
    continuo memory remember --shared --kind decision "We release on Mondays"
    continuo memory remember I am in Rome until Friday
    continuo memory remember --until 2026-07-31 Answer in German`
}

// Run adds the fact.
func (c *rememberCommand) Run(ctx context.Context, a *app) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	statement, err := c.statement(owner, c.Text)
	if err != nil {
		return err
	}
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	w, err := a.wireWith(ctx, settings, buildOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	fact, err := w.engine.Memories.Remember(ctx, w.scope(), statement)
	if err != nil {
		return err
	}
	return a.showAdded(c.JSON, fact)
}

func (a *app) showAdded(asJSON bool, fact memories.Fact) error {
	return a.show(asJSON, fact, func() {
		a.print("%d", fact.ID)
		a.note("Remembered as %s: %s", fact.Kind, factText(&fact))
	})
}

type correctCommand struct {
	memoryOwner
	factFlags
	Fact int64    `arg:"" help:"The number of the fact that is no longer right."`
	Text []string `arg:"" help:"The new fact."`
}

func (correctCommand) Help() string {
	return `Adds a fact that supersedes another one. Both stay, with their times; continuo memory forget removes one.

Examples:

    continuo memory correct 12 I live in Bergen`
}

// Run adds the fact.
func (c *correctCommand) Run(ctx context.Context, a *app, w *services) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	statement, err := c.statement(owner, c.Text)
	if err != nil {
		return err
	}
	fact, err := w.engine.Memories.Correct(ctx, w.scope(), c.Fact, statement)
	if err != nil {
		return factError(err)
	}
	return a.showAdded(c.JSON, fact)
}

// factError says where the numbers of facts are found.
func factError(err error) error {
	if errors.Is(err, continuo.ErrNotFound) {
		return fmt.Errorf("%w; continuo memory list shows what there is", err)
	}
	return err
}

type forgetCommand struct {
	memoryOwner
	Facts   []int64 `arg:"" optional:"" name:"fact" help:"The numbers of the facts."`
	All     bool    `help:"Everything that is known."`
	Sources bool    `help:"Also redact the messages that the facts were taken from."`
	Yes     bool    `short:"y" help:"Do not ask."`
}

func (forgetCommand) Help() string {
	return `Removes facts permanently, from the memory and from everything that was derived from them. They are not taken from the same messages again. The messages stay, unless --sources is given. The command asks first; without a terminal it needs --yes.

Examples:

    continuo memory forget 12
    continuo memory forget 12 13 --sources --yes
    continuo memory forget --all --user ada@example.com
    continuo memory forget --all --sources --yes`
}

// Run forgets after asking.
func (c *forgetCommand) Run(ctx context.Context, a *app, w *services) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	if c.All == (len(c.Facts) > 0) {
		return usage("give the numbers of facts, or --all")
	}
	what := term.Count(len(c.Facts), "fact")
	if c.All {
		what = "everything that is known"
	}
	if c.Sources {
		what += ", and redact the messages that it was taken from,"
	}
	if !c.Yes {
		if yes, err := a.ask(fmt.Sprintf("Forget %s permanently?", what)); err != nil || !yes {
			return err
		}
	}
	if c.All {
		if err := w.engine.Memories.ForgetAll(ctx, w.scope(), owner, c.Sources); err != nil {
			return err
		}
		a.print("forgot everything")
		return nil
	}
	for _, id := range c.Facts {
		if err := w.engine.Memories.Forget(ctx, w.scope(), owner, id, c.Sources); err != nil {
			return factError(err)
		}
		a.print("forgot fact %d", id)
	}
	return nil
}

type deriveMemoryCommand struct {
	memoryOwner
	JSON bool `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (deriveMemoryCommand) Help() string {
	return `Adds facts that at least three messages of at least two conversations of a user have in common: topics, tools, times, instructions and corrections that are repeated, and what the model of memory.extractor finds. They are marked as derived. Prints those that are new.

Examples:

    continuo memory derive
    continuo memory derive --user ada@example.com --json`
}

// Run derives.
func (c *deriveMemoryCommand) Run(ctx context.Context, a *app, w *services) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	facts, err := w.engine.Memories.Derive(ctx, w.scope(), owner)
	if err != nil {
		return err
	}
	return a.show(c.JSON, api.AllOf(facts), func() {
		for i := range facts {
			a.print("%d %s", facts[i].ID, factText(&facts[i]))
		}
		if len(facts) == 0 {
			a.note("No new patterns.")
		}
	})
}

type exportMemoryCommand struct {
	memoryOwner
	Format string `enum:"json,jsonl,markdown" default:"json" placeholder:"FORMAT" help:"The form: ${enum}; jsonl has one fact on each line after the first, markdown is for reading."`
}

func (exportMemoryCommand) Help() string {
	return `Writes everything that is known of a user: all facts with their sources, those that others have superseded too, and, as JSON, the profile.

Examples:

    continuo memory export --user ada@example.com > ada.json
    continuo memory export --format markdown`
}

// Run writes the export.
func (c *exportMemoryCommand) Run(ctx context.Context, a *app, w *services) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	export, err := w.engine.Memories.Export(ctx, w.scope(), owner)
	if err != nil {
		return err
	}
	switch c.Format {
	case "jsonl":
		head, err := rawjson.Marshal(export.ExportHead)
		if err != nil {
			return err
		}
		a.print("%s", head)
		for i := range export.Facts {
			line, err := rawjson.Marshal(export.Facts[i])
			if err != nil {
				return err
			}
			a.print("%s", line)
		}
	case "markdown":
		a.print("%s", strings.Join(factsInMarkdown(&export), "\n"))
	default:
		return a.json(export)
	}
	return nil
}

type importMemoryCommand struct {
	memoryOwner
	File    string `arg:"" help:"An export: JSON or JSON Lines. - is standard input."`
	AnyUser bool   `name:"any-user" help:"Also an export of another memory: of another user, of no user or of a project."`
	JSON    bool   `help:"Write the report as JSON."`
}

func (importMemoryCommand) Help() string {
	return `Adds the facts of an export, all or none, with their times and the order in which they supersede each other. Facts that are known are not added again, and what was forgotten stays forgotten.

A message that a fact was taken from is linked if it is here, and must have the words of the quote. Without it the fact becomes a statement of yours that is marked as imported, with its quotes.

Examples:

    continuo memory import ada.json --user ada@example.com
    continuo memory import laptop.json --user ada@example.com --any-user
    ssh other continuo memory export | continuo memory import -`
}

// Run adds the facts.
func (c *importMemoryCommand) Run(ctx context.Context, a *app) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	file, err := c.read(a)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	w, err := a.wireWith(ctx, settings, buildOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	done, err := w.engine.Memories.Import(ctx, w.scope(), owner, file, c.AnyUser)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return a.show(c.JSON, done, func() {
		for _, one := range done.LeftOut {
			why := "it, or a message that it was taken from, was removed here"
			if one.Reason == "other_user" {
				why = "a message that it was taken from is another user's here"
			}
			a.note("line %d: fact %d is left out: %s", one.Line, one.ID, why)
		}
		a.print("added %s, %d known, %d left out", term.Count(done.Added, "fact"), done.Known, len(done.LeftOut))
	})
}

// read reads the file, as far as a file may have.
func (c *importMemoryCommand) read(a *app) (*memories.File, error) {
	from := a.in
	if c.File != "-" {
		opened, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	data, err := io.ReadAll(io.LimitReader(from, memories.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return memories.ReadFile(data)
}

// factsInMarkdown writes facts as a page: one list for each kind, and one of those that others have superseded.
func factsInMarkdown(export *memories.Export) []string {
	whose := "the conversations without a user"
	switch {
	case export.Project:
		whose = "the project " + export.ProjectID
	case export.UserID != "":
		whose = export.UserID
	}
	lines := []string{"# Memory of " + markdownText(whose)}
	list := func(heading string, has func(*memories.Fact) bool) {
		begun := false
		for i := range export.Facts {
			if fact := &export.Facts[i]; has(fact) {
				if !begun {
					lines, begun = append(lines, "", "## "+heading, ""), true
				}
				lines = append(lines, markdownFact(fact))
			}
		}
	}
	for _, kind := range continuo.FactKinds {
		list(string(kind), func(f *memories.Fact) bool { return f.Kind == kind && f.SupersededBy == 0 })
	}
	list("superseded", func(f *memories.Fact) bool { return f.SupersededBy != 0 })
	return lines
}

// markdownFact is one line of the page.
func markdownFact(fact *memories.Fact) string {
	when := "since " + fact.ValidFrom.UTC().Format(time.DateOnly)
	if !fact.ValidTo.IsZero() {
		when = fact.ValidFrom.UTC().Format(time.DateOnly) + " to " + memory.LastDay(fact.ValidTo)
	}
	notes := []string{fmt.Sprintf("fact %d", fact.ID), when, "by " + fact.By}
	if fact.SupersededBy != 0 {
		notes = append(notes, fmt.Sprintf("superseded by %d", fact.SupersededBy))
	}
	if len(fact.Contradicts) > 0 {
		notes = append(notes, "contradicts "+strings.Trim(fmt.Sprint(fact.Contradicts), "[]"))
	}
	if fact.Imported != nil {
		notes = append(notes, "imported")
	}
	for _, source := range fact.Sources {
		notes = append(notes, fmt.Sprintf("%s %d", source.ConversationID, source.Seq))
	}
	return "- " + markdownText(fact.Text) + " (" + markdownText(strings.Join(notes, ", ")) + ")"
}

// markdownText is a text on one line in which nothing passes for Markdown.
func markdownText(text string) string {
	var escaped strings.Builder
	for _, r := range strings.Join(strings.Fields(term.Clean(text)), " ") {
		if strings.ContainsRune("\\`*_{}[]<>#|~!", r) {
			escaped.WriteByte('\\')
		}
		escaped.WriteRune(r)
	}
	return escaped.String()
}
