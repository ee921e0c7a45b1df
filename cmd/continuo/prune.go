package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/term"
)

type pruneCommand struct {
	OlderThan age  `required:"" placeholder:"DURATION" help:"Conversations whose last change is older than this, such as 30d, 2w or 36h."`
	Archive   bool `xor:"what" required:"" help:"Archive them."`
	Delete    bool `xor:"what" required:"" help:"Delete them permanently, archived ones too."`
	DryRun    bool `name:"dry-run" help:"Only list them."`
	Yes       bool `short:"y" help:"Do not ask."`
	JSON      bool `help:"Write JSON: {found, done, skipped}; with --dry-run {data}."`
}

func (pruneCommand) Help() string {
	return `Archives or deletes the conversations of the project whose last change is older than a time: retention, to be run now and then. One that changes meanwhile, or whose turn runs, is left alone. Forks keep what they began with. It can be stopped, and the same command continues.

Examples:

    continuo conversations prune --older-than 30d --archive --dry-run
    continuo conversations prune --older-than 30d --archive --yes
    continuo conversations prune --older-than 365d --delete --yes`
}

// pruning is the result.
type pruning struct {
	Found   int64 `json:"found"`
	Done    int64 `json:"done"`
	Skipped int64 `json:"skipped"` // changed in the meantime, or a turn ran
}

// prune is a run of the command.
type prune struct {
	*pruneCommand
	pruner
	app *app
}

// Run lists, or asks and prunes.
func (c *pruneCommand) Run(ctx context.Context, a *app, w *services) error {
	ctx, ignore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer ignore()
	p := &prune{c, pruner{w, w.settings.Project, time.Now().Add(-time.Duration(c.OlderThan)), c.Delete}, a}
	if c.DryRun {
		return p.list(ctx)
	}
	done, err := p.run(ctx)
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped after %s: %w; the same command continues", term.Count(done.Done, "conversation"), context.Canceled)
	}
	switch {
	case err != nil:
		return err
	case c.JSON:
		return a.json(done)
	}
	a.print("%s %s whose last change was before %s", c.participle(), term.Count(done.Done, "conversation"), term.Time(p.before))
	if done.Skipped > 0 {
		a.note("%s left alone: changed meanwhile, or a turn runs.", term.Count(done.Skipped, "conversation"))
	}
	return nil
}

func (c *pruneCommand) participle() string {
	if c.Delete {
		return "deleted"
	}
	return "archived"
}

// list prints what would be pruned.
func (p *prune) list(ctx context.Context) error {
	found := []continuo.Conversation{}
	err := p.each(ctx, func(conversation continuo.Conversation) error {
		if found = append(found, conversation); !p.JSON {
			p.app.print("%s  %s", term.Time(conversation.UpdatedAt), conversationText(conversation))
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.app.json(api.AllOf(found))
	}
	p.app.note("%s of project %s would be %s.", term.Count(len(found), "conversation"), p.w.settings.Project, p.participle())
	return nil
}

// run counts, asks, and prunes.
func (p *prune) run(ctx context.Context) (done pruning, err error) {
	err = p.each(ctx, func(continuo.Conversation) error { done.Found++; return nil })
	if err != nil || done.Found == 0 {
		return done, err
	}
	if !p.Yes {
		question := fmt.Sprintf("Archive %s of project %s?", term.Count(done.Found, "conversation"), p.w.settings.Project)
		if p.Delete {
			question = fmt.Sprintf("Delete %s of project %s permanently?", term.Count(done.Found, "conversation"), p.w.settings.Project)
		}
		if yes, err := p.app.ask(question); err != nil || !yes {
			return done, err
		}
	}
	shown := p.app.newProgress("pruning")
	defer shown.Close()
	err = p.each(ctx, func(conversation continuo.Conversation) error {
		pruned, err := p.one(ctx, conversation)
		if pruned {
			done.Done++
		} else {
			done.Skipped++
		}
		shown.Set(done.Done+done.Skipped, done.Found, fmt.Sprintf("%s of %s", term.Number(done.Done+done.Skipped), term.Count(done.Found, "conversation")))
		return err
	})
	return done, err
}

// each visits the conversations to prune, of every kind.
func (p *prune) each(ctx context.Context, visit func(continuo.Conversation) error) error {
	for _, kind := range []continuo.Kind{continuo.KindUser, continuo.KindTask, continuo.KindAgent, continuo.KindSide} {
		if err := p.pruner.each(ctx, continuo.ConversationQuery{Kind: kind}, visit); err != nil {
			return err
		}
	}
	return nil
}
