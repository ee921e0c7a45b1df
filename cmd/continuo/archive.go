package main

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/maintenance"
)

type archiveCommand struct {
	Conversations []string `arg:"" name:"conv" help:"Which ones: ids, keys or @1."`
	JSON          bool     `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (archiveCommand) Help() string {
	return `Moves the entries, turns and idempotency records of each conversation from the database to a compressed archive in the object store (objects.location). Archived conversations stay in the list of archived ones, and nothing is lost: restore brings them back unchanged. Until then they cannot be read, searched or continued. Forks keep the entries that they share. One whose turn runs is refused.

Examples:

    continuo conversations archive s1 s2
    continuo conversations list --archived
    continuo conversations restore s1`
}

// Run archives the named conversations one by one.
func (c *archiveCommand) Run(ctx context.Context, a *app, w *services) error {
	return a.eachOf(ctx, w, c.Conversations, c.JSON, func(conversation continuo.Conversation) (continuo.Conversation, string, error) {
		archived, err := w.archivist().Archive(ctx, conversation.ID)
		return archived, "archived", err
	})
}

type restoreCommand struct {
	Conversations []string `arg:"" name:"conv" help:"Which ones: ids or keys."`
	JSON          bool     `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (restoreCommand) Help() string {
	return `Brings archived conversations back into the database as they were, and removes their archives. A damaged archive is refused, and nothing is changed. An interrupted restore can be repeated.

Examples:

    continuo conversations restore s1
    continuo conversations list --archived --limit 0 --json | jq -r '.data[].id' | xargs continuo conversations restore`
}

// Run restores the named conversations one by one.
func (c *restoreCommand) Run(ctx context.Context, a *app, w *services) error {
	return a.eachOf(ctx, w, c.Conversations, c.JSON, func(conversation continuo.Conversation) (continuo.Conversation, string, error) {
		if conversation.ArchivedAt.IsZero() {
			return conversation, "not archived:", nil
		}
		restored, err := w.archivist().Restore(ctx, conversation.ID)
		return restored, "restored", err
	})
}

// archivist archives and restores in the store.
func (w *services) archivist() maintenance.Archivist {
	return maintenance.Archivist{Store: w.store, Objects: w.objects}
}

// eachOf finds all named conversations, then calls a function for each and prints its result.
func (a *app) eachOf(ctx context.Context, w *services, names []string, asJSON bool, do func(continuo.Conversation) (continuo.Conversation, string, error)) error {
	found, err := w.findAll(ctx, names)
	if err != nil {
		return err
	}
	for i, conversation := range found {
		done, word, err := do(conversation)
		if err != nil {
			return err
		}
		if found[i] = done; !asJSON {
			a.print("%s %s", word, conversationText(done))
		}
	}
	if asJSON {
		return a.json(api.AllOf(found))
	}
	return nil
}

// findAll finds the conversations that arguments name, or fails.
func (w *services) findAll(ctx context.Context, names []string) ([]continuo.Conversation, error) {
	var found []continuo.Conversation
	for _, name := range names {
		conversation, err := w.find(ctx, name)
		if err != nil {
			return nil, err
		}
		found = append(found, conversation)
	}
	return found, nil
}

// conversationText formats a conversation's name with its title and its length.
func conversationText(conversation continuo.Conversation) string {
	return fmt.Sprintf("%s %q with %s", nameOf(conversation), term.OneLine(conversation.Title, 60), term.Count(conversation.LastSeq, "entry"))
}
