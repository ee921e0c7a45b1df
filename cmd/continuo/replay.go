package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/window"
)

type replayCommand struct {
	narrowing
	Conversations []string `arg:"" optional:"" name:"conv" help:"Which ones: ids, keys or @1."`
	All           bool     `help:"All conversations of the project that people had; --user and --where narrow them."`
	File          []string `sep:"none" placeholder:"FILE" help:"The conversations of a file, in any form that continuo import reads; nothing of it is stored. May be repeated."`

	Model       []string `placeholder:"NAME" help:"Ask this model; a list, or repeated, to compare several. Default: the recorded model, for imported answers the default model."`
	View        []string `placeholder:"VIEW" help:"Build the requests with this view: ${turnviews}; a list, or repeated, to compare several. Default: the recorded one, for imported answers that of the mode."`
	MaxTokens   []int    `placeholder:"N" help:"Another limit on tokens, 0 for none; a list, or repeated, to compare several."`
	MaxMessages *int     `placeholder:"N" help:"Another limit on messages, 0 for none."`
	MaxChars    *int     `placeholder:"N" help:"Another limit on characters, 0 for none."`
	Agent       string   `placeholder:"AGENT" help:"Answer as this agent of the settings: with its persona, tools, and its model and view unless they are given."`
	Prompts     bool     `help:"Use the system messages and tools of the present settings. Default: the recorded ones."`

	DryRun      bool    `name:"dry-run" help:"Build the requests and compare their sizes; ask no model."`
	LimitCost   float64 `placeholder:"DOLLARS" help:"Stop before the requests cost more, in US dollars."`
	Limit       int     `placeholder:"N" help:"Send this many requests at most."`
	Concurrency int     `default:"4" help:"How many conversations are replayed at once."`
	Yes         bool    `short:"y" help:"Do not ask before requests are sent."`

	Output string `short:"o" placeholder:"FILE" help:"Write each result to this file as it comes, one JSON object a line."`
	Resume bool   `help:"Continue what --output has: a request that was answered there is not sent again."`
	HTML   string `name:"html" placeholder:"FILE" help:"Write a report to this file: one page with the totals and the texts side by side, to keep and to pass on."`
	Text   bool   `help:"Show the texts of the answers side by side."`
	JSON   bool   `help:"Write JSON: {dry_run, recorded, variants, data}."`
}

func (replayCommand) Help() string {
	return `Asks for the recorded answers of conversations again, with another model, view or budget, and compares them: text, tokens, cost, the share of each request that the one before had (which a provider's cache can have), and latency.

Each answer is asked for with the recorded history before it. Tools do not run: their recorded results stand, and an answer that called tools is asked for like any other. Nothing is written to the conversations. What the requests use is in continuo usage, and budgets apply. Not asked for again are answers that failed or were redacted, steps of workflows and roles of crews; they are counted.

Before anything is sent, the requests are built and their expected cost is shown, at the prices of the catalogue (docs/models.md). The exit code is 1 if an answer failed.

Examples:

    continuo replay s1 --model gpt-5-mini
    continuo replay s1 --view codex,continuity --max-tokens 4000,16000 --dry-run
    continuo replay --all --model small,large --limit-cost 2 -o results.jsonl
    continuo replay --all --model small,large -o results.jsonl --resume
    continuo replay --all --user ada@example.com --model small --html report.html
    continuo replay --file questions.jsonl.gz --model small --text
    continuo replay s1 --model small --yes --json | jq '.variants[].totals'`
}

func (c *replayCommand) check() error {
	sources := 0
	for _, given := range []bool{len(c.Conversations) > 0, c.All, len(c.File) > 0} {
		if given {
			sources++
		}
	}
	switch {
	case sources != 1:
		return usage("name conversations, or give --all or --file FILE: one of the three")
	case c.isSet() && !c.All:
		return usage("--user and --where narrow --all: give it too")
	case c.Resume && c.Output == "":
		return usage("--resume continues a file: name it with --output")
	case c.Resume && c.DryRun, c.Output != "" && c.DryRun:
		return usage("--dry-run asks no model: leave --output and --resume out, --json has its results")
	case c.LimitCost < 0 || c.LimitCost > 1e6 || math.IsNaN(c.LimitCost):
		return usage("--limit-cost: give an amount of dollars, such as 2.50")
	case c.Limit < 0:
		return usage("--limit: given %d; allowed: a positive number", c.Limit)
	case c.Concurrency < 1 || c.Concurrency > 64:
		return usage("--concurrency: given %d; allowed: 1 to 64", c.Concurrency)
	}
	for _, limit := range append(slices.Clone(c.MaxTokens), numbers(c.MaxMessages, c.MaxChars)...) {
		if limit < 0 {
			return usage("--max-tokens, --max-messages, --max-chars: give 0 for no limit or a positive number")
		}
	}
	for _, view := range c.View {
		if !slices.Contains(window.Names(), view) {
			return usage("--view: given %q; allowed: %s", term.OneLine(view, 60), oneOf(window.Names()))
		}
	}
	_, err := c.labels()
	return err
}

// numbers are those that were given.
func numbers(given ...*int) (all []int) {
	for _, number := range given {
		if number != nil {
			all = append(all, *number)
		}
	}
	return all
}

// Run replays.
func (c *replayCommand) Run(ctx context.Context, a *app) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	w, err := a.wireWith(ctx, settings, buildOptions{turns: true, existing: len(c.File) == 0})
	if err != nil {
		return err
	}
	defer w.Close()
	if err := checkAgent(settings, c.Agent); err != nil {
		return err
	}
	request := engine.Replay{Concurrency: c.Concurrency, MaxRequests: c.Limit, MaxCostNano: nano(c.LimitCost)}
	if request.Variants, err = c.variants(w.engine.Catalog); err != nil {
		return err
	}
	found, closeFiles, err := c.conversations(ctx, a, w)
	if err != nil {
		return err
	}
	defer closeFiles()
	request.Conversations = found
	file, err := openReplayFile(c.Output, c.Resume)
	if err != nil {
		return err
	}
	defer file.Close()
	report, err := createReport(c.HTML)
	if err != nil {
		return err
	}
	defer closeReport(report)
	return (&replaying{replayCommand: c, app: a, services: w, request: request, file: file, report: report}).run(ctx)
}

// variants are all combinations of the models, views and limits on tokens.
func (c *replayCommand) variants(models *catalog.Catalog) (all []engine.ReplayVariant, err error) {
	named := c.Model
	if len(named) == 0 {
		named = []string{""}
	}
	for _, name := range named {
		if _, err := models.Upstream(name); err != nil {
			return nil, usage("--model: %v", err)
		}
	}
	views := c.View
	if len(views) == 0 {
		views = []string{""}
	}
	limits := []*int{nil}
	if len(c.MaxTokens) > 0 {
		limits = nil
		for i := range c.MaxTokens {
			limits = append(limits, &c.MaxTokens[i])
		}
	}
	for _, name := range named {
		for _, view := range views {
			for _, limit := range limits {
				variant := engine.RequestVariant{
					Model: name, View: view, MaxTokens: limit, MaxMessages: c.MaxMessages, MaxChars: c.MaxChars, Agent: c.Agent, Settings: c.Prompts,
				}
				all = append(all, engine.ReplayVariant{Name: variantName(variant), Variant: variant})
			}
		}
	}
	return all, nil
}

// variantName names a variant by what it changes.
func variantName(v engine.RequestVariant) string {
	var words []string
	for _, word := range []string{v.Model, v.View} {
		if word != "" {
			words = append(words, word)
		}
	}
	for _, limit := range []struct {
		most *int
		of   string
	}{{v.MaxTokens, "tokens"}, {v.MaxMessages, "messages"}, {v.MaxChars, "chars"}} {
		switch {
		case limit.most == nil:
		case *limit.most == 0:
			words = append(words, "any "+limit.of)
		default:
			words = append(words, fmt.Sprintf("%d %s", *limit.most, limit.of))
		}
	}
	if v.Agent != "" {
		words = append(words, "agent "+v.Agent)
	}
	if v.Settings {
		words = append(words, "new prompts")
	}
	if len(words) == 0 {
		return "again"
	}
	return strings.Join(words, ", ")
}

// conversations are those to replay, the newest first.
func (c *replayCommand) conversations(ctx context.Context, a *app, w *services) (found []engine.ReplayConversation, closeFiles func(), err error) {
	closeFiles = func() {}
	switch {
	case len(c.File) > 0:
		return c.fromFiles(ctx, a, w)
	case c.All:
		labels, err := c.labels()
		if err != nil {
			return nil, closeFiles, err
		}
		all, _, err := w.list(ctx, 0, continuo.ConversationQuery{Kind: continuo.KindUser, UserID: c.User, Labels: labels})
		for _, conversation := range all {
			found = append(found, engine.ReplayConversation{Conversation: conversation})
		}
		return found, closeFiles, err
	}
	for _, name := range c.Conversations {
		conversation, err := w.find(ctx, name)
		if err != nil {
			return nil, closeFiles, err
		}
		found = append(found, engine.ReplayConversation{Conversation: conversation})
	}
	return found, closeFiles, nil
}

// fromFiles reads conversations into a store that lasts as long as the command. Those that cannot be read are reported.
func (c *replayCommand) fromFiles(ctx context.Context, a *app, w *services) (found []engine.ReplayConversation, closeFiles func(), err error) {
	closeFiles = func() {}
	folder, err := os.MkdirTemp("", "continuo-replay-*")
	if err != nil {
		return nil, closeFiles, fmt.Errorf("make a temporary store: %w", err)
	}
	removeFolder := func() { _ = os.RemoveAll(folder) } // in the system's folder for such
	store, err := sqlite.Open(ctx, filepath.Join(folder, "replay.db"), sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		removeFolder()
		return nil, closeFiles, fmt.Errorf("make a temporary store: %w", err)
	}
	closeFiles = func() {
		_ = store.Close() // it is removed
		removeFolder()
	}
	log := continuo.NewLog(store, continuo.LogOptions{Counter: lazyCounter{}, Prices: w.settings.PriceList()})
	for _, path := range c.File {
		if found, err = c.fromFile(ctx, a, w, log, path, found); err != nil {
			closeFiles()
			return nil, func() {}, err
		}
	}
	return found, closeFiles, nil
}

// fromFile adds the conversations of one file.
func (c *replayCommand) fromFile(ctx context.Context, a *app, w *services, log *continuo.Log, path string, found []engine.ReplayConversation) ([]engine.ReplayConversation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage("--file: %v", err)
	}
	defer file.Close()
	for document, err := range interchange.Read(filepath.Base(path), file, interchange.Options{}) {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("stopped: %w", context.Canceled)
		}
		var conversation continuo.Conversation
		if err == nil {
			for _, text := range document.Envelopes {
				if _, err = log.PutText(ctx, []byte(text)); err != nil {
					return nil, err
				}
			}
			document.Conversation.ProjectID, document.Conversation.Key = w.settings.Project, ""
			conversation, err = log.Import(ctx, document.Conversation, document.Entries)
		}
		if err != nil {
			a.note("%s left out: %v", a.notePaint.Yellow("note:"), err)
			continue
		}
		name := filepath.Base(path)
		if document.Position > 0 {
			name = fmt.Sprintf("%s:%d", name, document.Position)
		}
		found = append(found, engine.ReplayConversation{Conversation: conversation, Name: name, Log: log})
	}
	return found, nil
}
