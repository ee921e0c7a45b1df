package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/internal/recallbench"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/recall/lookup"
)

type evalCommand struct {
	Recall evalRecallCommand `cmd:"" help:"Measure how much of annotated evidence contexts hold."`
}

type evalRecallCommand struct {
	Files      []string `arg:"" name:"file" help:"JSON Lines, packed with gzip or not: conversations with messages, and qa: [{question, evidence: [message indexes], category}]."`
	Tokens     []int    `default:"1000,2000,4000,8000" help:"The budgets to measure; 0 for the view's own."`
	View       string   `default:"recall" help:"The view: recall, or, with recalls and without, one of ${turnviews}, or role:KIND for a crew's role that has read the conversation."`
	Scope      string   `enum:"conversation,user,project" default:"conversation" help:"Where the view recall looks."`
	Sessions   bool     `help:"Make a conversation of each session of a file's conversation, all of one user; use it with --scope user."`
	Threshold  float64  `default:"0.15" help:"How probable what turns recall must be: recall.threshold."`
	Located    bool     `help:"Count evidence of which a context shows a passage, too; the view recall then shows passages of long messages."`
	Categories bool     `help:"Show the categories too."`
	JSON       bool     `help:"Write JSON."`
}

func (evalRecallCommand) Help() string {
	return `For each question with evidence, the context is built that the question would get as the next message; no model is asked. Recall is the mean share of the evidence messages that the context holds whole, full the share of the questions all of whose evidence it holds. Conversations are put into temporary stores; the settings and the store of this installation are not used.

Examples:

    continuo eval recall questions.jsonl
    continuo eval recall questions.jsonl.gz --tokens 2000 --categories
    continuo eval recall questions.jsonl --view continuity --tokens 0
    continuo eval recall questions.jsonl --view continuity --tokens 0 --threshold 0.3
    continuo eval recall questions.jsonl --view role:full --tokens 8000`
}

// evalRow is the result of one setting.
type evalRow struct {
	File    string             `json:"file"`
	View    string             `json:"view"`
	Tokens  int                `json:"tokens"`
	Recalls bool               `json:"recalls"`
	Result  recallbench.Result `json:"result"`
}

// check checks the flags.
func (c *evalRecallCommand) check() error {
	if !(c.Threshold > 0 && c.Threshold <= 1) {
		return usage("--threshold: given %v; allowed: a number above 0 and at most 1", c.Threshold)
	}
	for _, tokens := range c.Tokens {
		if tokens < 0 {
			return usage("--tokens: given %d; allowed: a whole number of at least 0; 0 is the limit of the view itself", tokens)
		}
	}
	return nil
}

// Run measures.
func (c *evalRecallCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	var rows []evalRow
	for _, path := range c.Files {
		conversations, err := evidence.Load(path)
		switch {
		case as[*fs.PathError](err):
			return usage("%s", unreadable(path, err))
		case err != nil:
			return err
		}
		var settings []recallbench.Setting
		for _, tokens := range c.Tokens {
			setting := recallbench.Setting{View: c.View, Tokens: tokens, Scope: lookup.Scope(c.Scope), Located: c.Located}
			settings = append(settings, setting)
			if c.View != "recall" {
				setting.Off = true
				settings = append(settings, setting)
			}
		}
		results, err := recallbench.Measure(ctx, conversations, recallbench.Options{Settings: settings, Sessions: c.Sessions, Threshold: int(c.Threshold * 1_000_000)})
		if err != nil {
			return err
		}
		for i, result := range results {
			rows = append(rows, evalRow{filepath.Base(path), c.View, settings[i].Tokens, !settings[i].Off, result})
		}
	}
	if c.JSON {
		return a.json(rows)
	}
	for _, row := range rows {
		c.show(a, row)
	}
	return nil
}

func (c *evalRecallCommand) show(a *app, row evalRow) {
	limit, note := term.Count(row.Tokens, "token"), ""
	if row.Tokens == 0 {
		limit = "its own limit"
	}
	if !row.Recalls {
		note = "  without recalls"
	}
	for _, category := range slices.Sorted(maps.Keys(row.Result)) {
		score := row.Result[category]
		recall, full := score.Means()
		line := fmt.Sprintf("recall %.3f  full %.3f  of %d questions", recall, full, score.Questions)
		switch {
		case category == "":
			a.print("%s  %s  %s%s: %s", row.File, row.View, limit, note, line)
		case c.Categories:
			a.print("    %-26s %s", category, line)
		}
	}
}
