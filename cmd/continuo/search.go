package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/recall/search"
)

type searchCommand struct {
	narrowing
	Query  []string `arg:"" help:"The query."`
	In     string   `placeholder:"CONV" help:"Only in this conversation: id, key or @1."`
	Kind   string   `default:"user" enum:"user,task,agent,side,memory,all" help:"Search conversations of users (user), tasks (task), the work of agents on tasks (agent), clients' calls beside their conversations (side), memories (memory), or all. Default: user. Ignored with --in."`
	Role   *string  `enum:"user,assistant,tool,system" help:"Only entries of this role: user, assistant, tool or system."`
	Limit  int      `default:"20" help:"How many matches to show at most, up to 200."`
	Cursor string   `placeholder:"CURSOR" help:"Continue after the previous page: the cursor that it ended with."`
	JSON   bool     `help:"Write JSON: {data, has_more, next_cursor, incomplete}."`
}

func (searchCommand) Help() string {
	return `Finds entries and titles of the project by words or by a question, the best matches first: messages, tool calls and tool results. With --in also the entries that a fork shares with its parent.

An entry needs some of the words, in any form; rare words, names and dates count most. Words "in quotes" must occur side by side. -word leaves out entries with it (write it in one argument with the others, or all of them after --). word* must occur, and also finds longer ones. Case and accents make no difference. Chinese, Japanese and other scripts without spaces are searched by their characters.

What a client of the gateway deleted is found, and labelled: the log still has it, although no model is shown it.

Entries that are not indexed yet are indexed first; Ctrl-C stops that, and the indexed part is kept. The exit code is 0 also when nothing matches.

Examples:

    continuo search refund status
    continuo search 'When did we decide to move the deadline?'
    continuo search '"release date" -draft' --role user
    continuo search 上海 --in s1
    continuo search 'login.go' --kind all
    continuo search refund --user ada@example.com --where channel=mail
    continuo search staging --json | jq -r '.data[] | "\(.conversation_id) \(.seq)"'`
}

// Run searches.
func (s *searchCommand) Run(ctx context.Context, a *app, w *services) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	request, scope, err := s.request(ctx, w)
	if err != nil {
		return err
	}
	if err := a.catchUp(ctx, w, scope); err != nil {
		return err
	}
	result, err := w.engine.Conversations.Search(ctx, w.scope(), request)
	if err != nil {
		return err
	}
	if s.JSON {
		err = a.json(api.SearchPageOf(result))
	} else {
		a.printFound(result, strings.Join(s.Query, " "))
	}
	if result.Problem != nil {
		a.note("%s the index could not be brought up to date: %s", a.notePaint.Yellow("note:"), term.Clean(result.Problem.Error()))
	}
	if result.Incomplete {
		a.note("%s %s not indexed yet: there may be more matches.", a.notePaint.Yellow("note:"), waitingText(result.Waiting))
	}
	return err
}

// request is the search, and the scope that the index must cover.
func (s *searchCommand) request(ctx context.Context, w *services) (index.Request, index.Scope, error) {
	if s.Limit < 1 || s.Limit > index.MaxLimit {
		return index.Request{}, index.Scope{}, usage("--limit: given %d; allowed: 1 to %d", s.Limit, index.MaxLimit)
	}
	labels, err := s.labels()
	if err != nil {
		return index.Request{}, index.Scope{}, err
	}
	if s.In != "" && len(labels) > 0 {
		return index.Request{}, index.Scope{}, usage("--where chooses among conversations: leave it out with --in, which names one")
	}
	request := index.Request{Query: strings.Join(s.Query, " "), UserID: s.User, Labels: labels, Kinds: index.KindsOf(s.Kind), Limit: s.Limit, Cursor: s.Cursor}
	if err := search.Check(request.Query); err != nil { // before anything is indexed
		return request, index.Scope{}, &usageError{err}
	}
	if s.Role != nil {
		request.Role = continuo.Role(*s.Role)
	}
	if s.In == "" {
		return request, index.Scope{ProjectID: w.settings.Project}, nil
	}
	conversation, err := w.find(ctx, s.In)
	request.Conversation = &conversation
	return request, index.Scope{ConversationID: conversation.ID}, err
}

// manyEntries is how many entries take so long to index that a bar is shown.
const manyEntries = 2000

// catchUp indexes entries that are not in the index, with a bar for many. The search reports its failures.
func (a *app) catchUp(ctx context.Context, w *services, scope index.Scope) error {
	total, err := w.engine.Conversations.Unindexed(ctx, scope, 1000)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	var done int64
	var indexed func(entries int64)
	if total > manyEntries {
		bar := a.newProgress("indexing")
		defer bar.Close()
		indexed = func(entries int64) {
			done += entries
			bar.Set(done, total, term.Count(done, "entry"))
		}
	}
	_ = w.engine.Conversations.Index(ctx, scope, indexed)
	if ctx.Err() != nil {
		return fmt.Errorf("search: %w", ctx.Err())
	}
	return nil
}

// printFound prints matches, two lines for each.
func (a *app) printFound(result index.Result, query string) {
	if len(result.Items) == 0 && result.NextCursor == "" {
		a.note("Nothing matches %s.", term.OneLine(query, 100))
	}
	for _, item := range result.Items {
		name := item.Key
		if name == "" {
			name = item.ConversationID
		}
		place := "title"
		if item.Seq > 0 {
			place = fmt.Sprintf("#%d %s", item.Seq, item.Role)
		}
		head := fmt.Sprintf("%s %s %s", a.paint.Cyan(term.OneLine(name, 60)), a.paint.Bold(place), a.paint.Dim(term.Time(item.CreatedAt)))
		if item.Seq > 0 && item.Title != "" {
			head += " " + a.paint.Dim(term.OneLine(item.Title, 40))
		}
		if item.Deleted {
			head += " " + a.paint.Yellow("(deleted by a client)")
		}
		a.print("%s\n    %s", head, a.highlighted(item.Snippet))
	}
	if result.NextCursor != "" {
		a.note("There may be more: the same command with --cursor %s", result.NextCursor)
	}
}

// highlighted is a snippet with its matches coloured.
func (a *app) highlighted(snippet fulltext.Snippet) string {
	var line strings.Builder
	at := 0
	for _, span := range snippet.Highlights {
		line.WriteString(term.Clean(snippet.Text[at:span.Start]))
		line.WriteString(a.paint.Yellow(term.Clean(snippet.Text[span.Start:span.End])))
		at = span.End
	}
	line.WriteString(term.Clean(snippet.Text[at:]))
	return line.String()
}

func waitingText(n int) string {
	if n == 1 {
		return "1 conversation is"
	}
	return term.Number(n) + " conversations are"
}
