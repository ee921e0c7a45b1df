package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/maintenance"
)

type storeCheckCommand struct {
	Repair bool `help:"Repair what needs no decision: remove unreferenced objects, rebuild indexes."`
	JSON   bool `help:"Write JSON: {checked, findings, more}."`
}

func (c *storeCheckCommand) changes() bool { return c.Repair }

func (storeCheckCommand) Help() string {
	return `Checks all conversations of all projects: sequences have no gap, groups of calls and results are valid, all references resolve (parents of forks, envelopes, objects, archives), counts of characters, tokens and seqs are right, and the index of runs agrees with the entries. The store can be used meanwhile. Each finding says what to do. The exit code is 1 when something is left to do. The database engine's own check runs first (SQLite: PRAGMA integrity_check).

Examples:

    continuo store check
    continuo store check --repair
    continuo store check --json | jq -r '.findings[] | .conversation_id + " " + .what'`
}

// maxFindings bounds how many findings are shown; a broken disk may have millions.
const maxFindings = 10_000

// checkReport is what a check found.
type checkReport struct {
	Checked  maintenance.Checked   `json:"checked"`
	Findings []maintenance.Finding `json:"findings"`
	More     bool                  `json:"more"` // there are more findings than are listed
}

// Run checks the store and prints the findings.
func (c *storeCheckCommand) Run(ctx context.Context, a *app, w *services) error {
	ctx, ignore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer ignore()
	if err := c.checkRepairTarget(a, w.settings); err != nil {
		return err
	}
	report, err := c.check(ctx, a, w)
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped: %w", context.Canceled)
	}
	switch {
	case err != nil:
		return err
	case c.JSON:
		err = a.json(report)
	default:
		a.printFindings(report)
	}
	if err == nil && report.Checked.Findings > report.Checked.Repaired {
		err = errSilent
	}
	return err
}

// checkRepairTarget refuses to remove objects that may be another store's: a file that --store names, such as a backup, does not
// refer to the objects that the store of the settings has added since.
func (c *storeCheckCommand) checkRepairTarget(a *app, settings *config.Config) error {
	if !c.Repair || a.globals.Store == nil {
		return nil
	}
	for _, setting := range settings.Settings() {
		if from := setting.Origin; setting.Key == "objects.location" && from.Kind != config.FromDefault && from.Kind != config.FromFlag {
			return usage("--repair removes objects that the store does not name, and those at %s (objects.location, %s) may be another store's than %s: say where its own are with --set objects.location=WHERE",
				setting.Value, from, *a.globals.Store)
		}
	}
	return nil
}

func (c *storeCheckCommand) check(ctx context.Context, a *app, w *services) (report checkReport, err error) {
	total, err := countConversations(ctx, w.store)
	if errors.Is(err, continuo.ErrUnavailable) {
		return report, err
	}
	// The total is for the bar only: the check itself finds the unreadable parts of the list.
	shown := a.newProgress("checking")
	defer shown.Close()
	report.Findings = []maintenance.Finding{}
	checker := maintenance.Checker{Store: w.store, Objects: w.objects, Counter: lazyCounter{}, Repair: c.Repair, Progress: func(so maintenance.Checked) {
		shown.Set(so.Conversations, total, fmt.Sprintf("%s of %s, %s", term.Number(so.Conversations), term.Count(max(total, so.Conversations), "conversation"), term.Count(so.Findings, "finding")))
	}}
	report.Checked, err = checker.Check(ctx, func(f maintenance.Finding) {
		if report.More = len(report.Findings) == maxFindings; !report.More {
			report.Findings = append(report.Findings, f)
		}
	})
	return report, err
}

// countConversations counts those of all projects.
func countConversations(ctx context.Context, store maintenance.RecordStore) (n int64, err error) {
	const page = 10_000
	for after := ""; ; {
		ids, err := store.ConversationIDs(ctx, after, page)
		if n += int64(len(ids)); err != nil || len(ids) == 0 {
			return n, err
		}
		after = ids[len(ids)-1]
	}
}

func (a *app) printFindings(report checkReport) {
	for _, f := range report.Findings {
		sign := a.paint.Red("✘")
		if f.Repaired {
			sign = a.paint.Green("✔")
		}
		where := f.ConversationID
		if f.Seq > 0 {
			where = fmt.Sprintf("%s entry %d", where, f.Seq)
		}
		a.print("%s %s %s %s", sign, a.paint.Cyan(where), a.paint.Dim(string(f.Kind)), a.shown(f.What))
		fix := f.Fix
		if f.Repaired {
			fix = "repaired"
		}
		a.print("    %s", a.shown(fix))
	}
	if report.More {
		a.print("… and more: fix these and check again")
	}
	a.printChecked(report.Checked)
}

func (a *app) printChecked(checked maintenance.Checked) {
	what := fmt.Sprintf("checked %s, %s, %s, %s, %s", term.Count(checked.Conversations, "conversation"), term.Count(checked.Entries, "entry"),
		term.Count(checked.Turns, "turn"), term.Count(checked.Receipts, "idempotency record"), term.Count(checked.Objects, "object"))
	switch {
	case checked.Findings == 0:
		a.print("%s %s: nothing is wrong", a.paint.Green("✔"), what)
	case checked.Findings == checked.Repaired:
		a.print("%s %s: %s, all repaired", a.paint.Green("✔"), what, term.Count(checked.Findings, "finding"))
	default:
		a.print("%s %s: %s, %s repaired", a.paint.Red("✘"), what, term.Count(checked.Findings, "finding"), term.Number(checked.Repaired))
	}
}
