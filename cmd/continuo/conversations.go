package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/engine/conversations"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
)

type conversationsCommand struct {
	List   listCommand   `cmd:"" help:"List conversations, the newest change first."`
	Show   showCommand   `cmd:"" help:"Show a conversation and its entries."`
	Rename renameCommand `cmd:"" help:"Give a conversation another title."`
	Key    keyCommand    `cmd:"" help:"Show, set, change or remove a conversation's key."`
	Mode   modeCommand   `cmd:"" help:"Show or change a conversation's mode and agent."`
	Fork   forkCommand   `cmd:"" help:"Begin a conversation with the entries of another."`
	Delete deleteCommand `cmd:"" help:"Delete conversations."`

	Archive archiveCommand `cmd:"" help:"Move conversations from the database to archives."`
	Restore restoreCommand `cmd:"" help:"Restore archived conversations."`
	Redact  redactCommand  `cmd:"" help:"Remove the content of entries permanently."`
	Prune   pruneCommand   `cmd:"" help:"Archive or delete conversations that are older than a time."`
}

type listCommand struct {
	narrowing
	listing
	Archived bool   `help:"List those that are archived instead."`
	Kind     string `default:"user" enum:"user,task,agent,side,memory" help:"List conversations of users (user), of tasks (task), of agents that work on tasks (agent), of clients' calls beside their conversations (side), or memories (memory). Default: user."`
}

func (listCommand) Help() string {
	return `Lists the conversations of the project, the newest change first. The first column is a short name that every command takes instead of the id.

Examples:

    continuo conversations list
    continuo conversations list --archived
    continuo conversations list --kind task
    continuo conversations list --user ada@example.com --where ticket=4411
    continuo conversations list --limit 0 --json | jq -r '.data[].id'`
}

func (l *listCommand) check() error {
	_, err := l.labels()
	return cmp.Or(l.listing.check(), err)
}

// Run prints the list.
func (l *listCommand) Run(ctx context.Context, a *app, w *services) error {
	labels, err := l.labels()
	if err != nil {
		return err
	}
	query := continuo.ConversationQuery{UserID: l.User, Labels: labels, Kind: continuo.Kind(l.Kind), Archived: l.Archived}
	if l.Kind == "user" {
		query.Kind = continuo.KindUser
	}
	found, more, err := w.list(ctx, l.Limit, query)
	if err != nil {
		return err
	}
	return showList(a, l.listing, found, more, func() { l.emptyListText(a, w.settings.Project) }, func() { a.printConversations(found, query) })
}

// emptyListText says that no such conversations exist.
func (l *listCommand) emptyListText(a *app, project string) {
	switch {
	case l.isSet():
		a.note("No such conversations in project %s.", project)
	case l.Archived:
		a.note("No archived conversations in project %s.", project)
	case l.Kind != "user":
		a.note("No conversations of the kind %s in project %s.", l.Kind, project)
	default:
		a.note("No conversations in project %s yet. Begin one with: continuo chat", project)
	}
}

// printConversations prints a list. Short names exist only in the complete list of people's conversations that are not
// archived.
func (a *app) printConversations(found []continuo.Conversation, query continuo.ConversationQuery) {
	times := "updated"
	if query.Archived {
		times = "archived"
	}
	t := a.table(">", "conversation", "mode", ">entries", times, "title")
	for i, conversation := range found {
		short, at := "@"+strconv.Itoa(i+1), conversation.UpdatedAt
		if query.Archived || query.Kind != continuo.KindUser || query.UserID != "" || len(query.Labels) > 0 {
			short = "" // short names are positions in the complete list
		}
		if query.Archived {
			at = conversation.ArchivedAt
		}
		t.Add(
			a.paint.Dim(short), a.paint.Cyan(term.OneLine(nameOf(conversation), 40)),
			modeOf(conversation), term.Number(conversation.LastSeq),
			term.Time(at), term.OneLine(conversation.Title, 200),
		)
	}
	a.printTable(t, a.width)
}

// nameOf is a conversation's name for people: its key, or else its id.
func nameOf(conversation continuo.Conversation) string {
	if conversation.Key != "" {
		return conversation.Key
	}
	return conversation.ID
}

// listPage is the page size of a query for conversations.
const listPage = 200

// list returns the conversations of the project that match a query, most recently changed first, at most limit (0:
// all), and whether there are more.
func (w *services) list(ctx context.Context, limit int, query continuo.ConversationQuery) (found []continuo.Conversation, more bool, err error) {
	query.ProjectID, query.Limit = w.settings.Project, listPage
	found, more, err = pages(limit, listPage, func(last *continuo.Conversation) ([]continuo.Conversation, error) {
		if last != nil {
			query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
		}
		return w.engine.Conversations.List(ctx, query)
	})
	if err != nil {
		return nil, false, fmt.Errorf("list conversations: %w", err)
	}
	return found, more, nil
}

// find finds the conversation that an argument names.
func (w *services) find(ctx context.Context, name string) (continuo.Conversation, error) {
	if position, ok := strings.CutPrefix(name, "@"); ok {
		return w.nth(ctx, name, position)
	}
	conversation, err := w.engine.Conversations.Find(ctx, w.scope(), name)
	if err != nil {
		return continuo.Conversation{}, fmt.Errorf("%w in project %s; continuo conversations list shows what there is", err, w.settings.Project)
	}
	return conversation, nil
}

// nth finds the conversation at a position of the list, from 1.
func (w *services) nth(ctx context.Context, name, position string) (continuo.Conversation, error) {
	n, err := strconv.Atoi(position)
	if err != nil || n < 1 {
		return continuo.Conversation{}, usage("conversation %q: @ is followed by a position in the list of conversations, such as @1", name)
	}
	found, _, err := w.list(ctx, n, continuo.ConversationQuery{})
	if err != nil {
		return continuo.Conversation{}, err
	}
	if len(found) < n {
		return continuo.Conversation{}, fmt.Errorf("conversation %s: %w: project %s has %s", name, continuo.ErrNotFound, w.settings.Project, term.Count(len(found), "conversation"))
	}
	return found[n-1], nil
}

type renameCommand struct {
	Conversation string `arg:"" name:"conv" help:"Which one: id, key or @1."`
	Title        string `arg:"" help:"The new title."`
	JSON         bool   `help:"Write the conversation as JSON."`
}

func (renameCommand) Help() string {
	return `Changes the title and nothing else; the key and the id stay.

Examples:

    continuo conversations rename s1 "Refund for order 4411"
    continuo conversations rename @1 "The one from this morning"`
}

func (r *renameCommand) check() error {
	if strings.TrimSpace(r.Title) == "" {
		return usage("the new title is empty: give a text")
	}
	return nil
}

// Run changes the title.
func (r *renameCommand) Run(ctx context.Context, a *app, w *services) error {
	conversation, err := w.find(ctx, r.Conversation)
	if err != nil {
		return err
	}
	if conversation, err = w.engine.Conversations.Change(ctx, w.scope(), conversation.ID, continuo.ConversationChange{Title: &r.Title}); err != nil {
		return err
	}
	return a.show(r.JSON, conversation, func() { a.print("%s is now called %q", nameOf(conversation), conversation.Title) })
}

type forkCommand struct {
	Conversation string `arg:"" name:"conv" help:"Which one: id, key or @1."`
	At           seq    `placeholder:"SEQ" help:"The last entry that both share. Default: the newest."`
	Title        string `placeholder:"TEXT" help:"Title of the fork. Default: the same."`
	Key          string `placeholder:"KEY" help:"Session id of the fork. Default: none."`
	JSON         bool   `help:"Write the fork as JSON."`
}

func (forkCommand) Help() string {
	return `A fork begins with the entries of its parent up to --at and is independent after that. Nothing is copied, so its cost does not depend on the parent's length. It must not separate a tool call from its result.

Examples:

    continuo conversations fork s1
    continuo conversations fork s1 --at 12 --title "What if we had refunded"`
}

// Run makes the fork.
func (f *forkCommand) Run(ctx context.Context, a *app, w *services) error {
	if f.Key != "" {
		if err := conversations.CheckKey(f.Key); err != nil {
			return err
		}
	}
	parent, err := w.find(ctx, f.Conversation)
	if err != nil {
		return err
	}
	fork, err := w.engine.Conversations.Fork(ctx, parent.ID, int64(f.At), continuo.Conversation{Title: f.Title, Key: f.Key})
	if err != nil {
		return err
	}
	return a.show(f.JSON, fork, func() {
		a.print("%s", fork.ID)
		a.note("A fork of %s with its first %s. Continue with: continuo chat %s", nameOf(parent), term.Count(fork.ForkSeq, "entry"), nameOf(fork))
	})
}

type deleteCommand struct {
	Conversations []string `arg:"" name:"conv" help:"Which ones: ids, keys or @1."`
	Yes           bool     `short:"y" help:"Do not ask."`
}

func (deleteCommand) Help() string {
	return `Deletes conversations with all their entries, permanently. Forks keep the entries that they share. The command asks first; without a terminal it needs --yes.

Examples:

    continuo conversations delete s1
    continuo conversations delete --yes s1 s2`
}

// Run deletes after asking.
func (d *deleteCommand) Run(ctx context.Context, a *app, w *services) error {
	found, err := w.findAll(ctx, d.Conversations)
	if err != nil {
		return err
	}
	for _, conversation := range found {
		what := conversationText(conversation)
		if !d.Yes {
			yes, err := a.ask("Delete " + what + " permanently?")
			if err != nil {
				return err
			}
			if !yes {
				a.note("Kept %s.", nameOf(conversation))
				continue
			}
		}
		if err := w.engine.Conversations.Delete(ctx, conversation.ID); err != nil {
			return err
		}
		a.print("deleted %s", what)
	}
	return nil
}
