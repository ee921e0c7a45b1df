package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
)

type auditCommand struct {
	Since        *age    `placeholder:"DURATION" help:"Only events of this long ago or later, such as 2h or 7d."`
	Key          *string `placeholder:"KEY" help:"Only events of this API key, by its id; empty for callers without one."`
	Conversation string  `placeholder:"CONV" help:"Only events that name this conversation, by its id."`
	Operation    string  `placeholder:"NAME" help:"Only this operation, such as deleteConversation or \"cli.conversations delete\"."`
	After        int64   `placeholder:"CURSOR" xor:"part" help:"The first events after this cursor, rather than the newest."`
	All          bool    `xor:"part" help:"All events rather than the newest."`
	Limit        int     `default:"50" placeholder:"N" help:"How many events are shown. Default: 50."`
	JSON         bool    `help:"Write JSON: {data}, as GET /api/audit."`
}

func (auditCommand) Help() string {
	return `Shows who read and changed what in the project, the newest events last: the API key or the command, the operation, the conversation, the outcome as an HTTP status, and the address of the client. No event has any content. Reads are recorded where audit.reads is on; audit.keep says for how long events are kept.

Examples:

    continuo audit
    continuo audit --since 24h --operation deleteConversation
    continuo audit --conversation conv_01J8Z3N6T8 --all
    continuo audit --key 7k3mqv0z2x9a --all --json > events.json`
}

// auditPage is how many events are read at once.
const auditPage = 1000

// Run prints events.
func (c *auditCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 1 {
		return usage("--limit: given %d; allowed: a positive number", c.Limit)
	}
	w, err := a.wireStore(ctx, openExisting)
	if err != nil {
		return err
	}
	defer w.Close()
	query := audit.Query{
		ProjectID: w.settings.Project, KeyID: c.Key, ConversationID: c.Conversation, Operation: c.Operation,
		After: c.After, Limit: c.Limit, Newest: c.After == 0,
	}
	if c.Since != nil {
		query.From = time.Now().Add(-time.Duration(*c.Since))
	}
	if c.All {
		query.Newest, query.Limit = false, auditPage
	}
	shown := []api.AuditEvent{}
	for {
		events, err := w.store.AuditEvents(ctx, query)
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		for _, event := range events {
			shown = append(shown, api.AuditEventOf(event))
			query.After = event.Position
		}
		if !c.All || len(events) < auditPage {
			break
		}
	}
	return a.show(c.JSON, api.AllOf(shown), func() { a.printAudit(shown) })
}

func (a *app) printAudit(events []api.AuditEvent) {
	if len(events) == 0 {
		a.note("No events.")
		return
	}
	t := a.table("time", "by", "operation", "conversation", "target", ">status", ">times", "from")
	for _, e := range events {
		by := cmp.Or(e.KeyID, string(e.Origin))
		if e.UserID != "" {
			by += " (" + e.UserID + ")"
		}
		t.Add(term.Time(e.At), by, e.Operation, e.ConversationID, e.Target, strconv.Itoa(e.Status), strconv.FormatInt(e.Count, 10), e.Remote)
	}
	a.printTable(t, a.width)
}

// auditTrail is the trail of a program that stays; nil where the settings turn it off.
func (w *services) auditTrail(logger *slog.Logger) *audit.Trail {
	if !w.settings.Audit.Enabled {
		return nil
	}
	return audit.NewTrail(w.store, audit.Options{Logger: logger})
}

// pruneAudit removes the events that are too old, now and every hour: one server on the store at a time.
func (w *services) pruneAudit(ctx context.Context, logger *slog.Logger) {
	keep := w.settings.Audit.Keep
	if keep == 0 {
		return
	}
	w.hourly(ctx, "audit", func(ctx context.Context) {
		if removed, err := removeAudit(ctx, w.store, time.Now().Add(-keep)); err != nil && ctx.Err() == nil {
			logger.ErrorContext(ctx, "audit_not_pruned", "error", err.Error())
		} else if removed > 0 {
			logger.InfoContext(ctx, "audit_pruned", "events", removed)
		}
	})
}

// removeAudit removes the events of before a time, some at once, so that other writers need not wait.
func removeAudit(ctx context.Context, store audit.Store, before time.Time) (removed int, err error) {
	for {
		count, err := store.PruneAudit(ctx, before, auditPage)
		if removed += count; err != nil || count < auditPage {
			return removed, err
		}
	}
}

// trustedProxies are the networks of the setting, which was checked.
func trustedProxies(listed []string) (networks []netip.Prefix) {
	for _, item := range listed {
		if network, err := config.ParseNetwork(item); err == nil {
			networks = append(networks, network)
		}
	}
	return networks
}

// changingCommands are the last words of the commands that change conversations, keys or stores.
var changingCommands = []string{
	"chat", "start", "resume", "stop", "cancel", "approve", "set", "retry", "skip", "create", "deploy", "kill", "revoke", "budget", "delete", "rm",
	"prune", "redact", "archive", "restore", "rename", "fork", "import", "remember", "forget", "correct", "derive", "reset", "copy",
}

// recordCommand records in the audit log that a command was run, if it is one that changes something: an event for each
// conversation that it changed, or one.
func (a *app) recordCommand(ctx context.Context, parsed *kong.Context, subject *audit.Subject, failure error) {
	words := strings.Fields(parsed.Selected().Path())
	if len(words) == 0 || a.used == nil || !a.used.Audit.Enabled || isDryRun(parsed) {
		return
	}
	if !isChange(parsed, words) {
		return
	}
	status := http.StatusOK
	if failure != nil {
		status = api.ProblemOf(failure).Status
	}
	event := audit.Event{
		Caller: audit.Caller{Origin: audit.OriginCLI, ProjectID: a.used.Project}, Operation: "cli." + strings.Join(words, " "), Status: status,
	}
	subject.Fill(&event)
	conversations := subject.Conversations()
	if len(conversations) == 0 {
		conversations = []string{""}
	}
	store, _, err := openExisting(ctx, a.used.Store)
	if err != nil {
		a.note("%s the command is not in the audit log: %v", a.notePaint.Yellow("note:"), err)
		return
	}
	defer func() { _ = store.Close() }() // what was acknowledged is durable
	trail := audit.NewTrail(store, audit.Options{})
	defer trail.Close()
	for _, id := range conversations[:len(conversations)-1] {
		event.ConversationID = id
		trail.Add(event)
	}
	event.ConversationID = conversations[len(conversations)-1]
	if err := trail.Commit(ctx, event); err != nil {
		a.note("%s the command is not in the audit log: %v", a.notePaint.Yellow("note:"), err)
	}
}

// isChange reports whether a command changes something. Of one that shows or changes, its arguments say it.
func isChange(parsed *kong.Context, words []string) bool {
	if target := parsed.Selected().Target; target.CanAddr() {
		if command, ok := target.Addr().Interface().(interface{ changes() bool }); ok {
			return command.changes()
		}
	}
	return isChanging(words)
}

// isChanging reports whether a command that has these words always changes something.
func isChanging(words []string) bool {
	return slices.Contains(changingCommands, words[len(words)-1]) || strings.Join(words, " ") == "crew run"
}

// isDryRun reports whether a command only says what it would do.
func isDryRun(parsed *kong.Context) bool {
	for _, flag := range parsed.Flags() {
		if flag.Name == "dry-run" && flag.Set {
			return true
		}
	}
	return false
}
