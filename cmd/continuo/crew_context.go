package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/engine/crews"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

type crewContextCommand struct {
	Role string `arg:"" help:"The role, by its role_name or its display name."`
	crewChoice
	At     int64     `placeholder:"SEQ" help:"Show the view as of this entry. Default: the newest entry."`
	Round  int       `placeholder:"N" help:"Show its Nth request in the conversation, from 1; -1 is the newest."`
	Rounds bool      `help:"List its requests."`
	Beside string    `placeholder:"ROLE" help:"Compare what the two roles see, entry by entry, in a table."`
	At2    int64     `name:"at2" placeholder:"SEQ" help:"As --at, of the second role. Default: as --at."`
	Round2 int       `name:"round2" placeholder:"N" help:"As --round, of the second role."`
	Diff   roundPair `placeholder:"N M" help:"Show the lines that differ between two of its rounds."`
	Plan   bool      `help:"Show for every entry why it is in or out; with --beside, for both roles."`
	System bool      `help:"Put the system messages before the text: its system prompt, the crew's rules, who is in the crew."`
	Raw    bool      `help:"Write the text alone."`
	JSON   bool      `help:"Write JSON, as the API does: the context, with --round {body, sha256, same, plan, …}, with --beside and --diff {left, right, lines}, with --rounds {data}."`
}

func (crewContextCommand) Help() string {
	return `The context audit of a crew: the text that a role would be sent now, would have been sent as of an entry, or was sent in one of its rounds, rebuilt from the log. No model is called and nothing is changed.

--beside is a table of entries, with what each of the two sees of them: whole, shortened, in a summary or in its notes, not repeated (it was shown or said in an earlier turn), later, left out. < is next to what only the left one is shown, > to what only the right one is, ≠ marks other differences. Adjacent entries with equal rows are folded. --diff shows the lines that differ between two rounds.

Examples:

    continuo crew context builder
    continuo crew context builder garden --session s1 --plan
    continuo crew context builder --rounds
    continuo crew context builder --round 2 --system
    continuo crew context builder --beside reviewer
    continuo crew context builder --beside reviewer --plan
    continuo crew context builder --diff 1 2`
}

// check refuses flags that cannot be combined.
func (c *crewContextCommand) check() error {
	given := func(flag bool, name string) []string {
		if flag {
			return []string{name}
		}
		return nil
	}
	compares := c.Diff != roundPair{}
	var shows []string
	for _, one := range [][]string{given(c.Rounds, "--rounds"), given(c.Beside != "", "--beside"), given(compares, "--diff"), given(c.Raw, "--raw")} {
		shows = append(shows, one...)
	}
	switch {
	case len(shows) > 1:
		return usage("%s do not go together: choose one", strings.Join(shows, " and "))
	case c.At != 0 && c.Round != 0 || c.At2 != 0 && c.Round2 != 0:
		return usage("a position in the log and a round exclude each other: choose one")
	case (c.At2 != 0 || c.Round2 != 0) && c.Beside == "":
		return usage("--at2 and --round2 belong to the second role: give --beside ROLE")
	case compares && (c.At != 0 || c.Round != 0):
		return usage("--diff names its two rounds itself: leave --at and --round out")
	case c.Plan && (c.Rounds || compares || c.Raw):
		return usage("--plan needs the view of a role at one position, or two roles side by side: leave --rounds, --diff and --raw out")
	case c.System && (c.Rounds || compares || c.Beside != ""):
		return usage("--system needs the text of one role: leave --rounds, --beside and --diff out")
	}
	return nil
}

// Run shows what a role sees or saw.
func (c *crewContextCommand) Run(ctx context.Context, a *app, w *services) error {
	look, err := a.crewContexts(ctx, w, c.crewChoice)
	if err != nil {
		return err
	}
	look.plan, look.system, look.raw, look.json = c.Plan, c.System, c.Raw, c.JSON
	if c.Rounds {
		return look.list(ctx, c.Role)
	}
	if c.Diff != (roundPair{}) {
		return look.difference(ctx, c.Role, c.Diff)
	}
	left, err := look.query(ctx, c.Role, c.At, c.Round)
	if err != nil {
		return err
	}
	if c.Beside == "" {
		return look.show(ctx, left)
	}
	if c.At2 == 0 && c.Round2 == 0 && c.Round == 0 {
		c.At2 = c.At
	}
	right, err := look.query(ctx, c.Beside, c.At2, c.Round2)
	if err != nil {
		return err
	}
	return look.compareEntries(ctx, left, right)
}

// crewContexts shows what the roles of a crew see.
type crewContexts struct {
	*app
	*services
	session                 engine.CrewSession
	conversation            continuo.Conversation
	plan, system, raw, json bool
}

// crewContexts finds a crew and its conversation.
func (a *app) crewContexts(ctx context.Context, w *services, choice crewChoice) (*crewContexts, error) {
	session, err := w.crewSession(ctx, choice, false)
	if err != nil {
		return nil, err
	}
	if session.SessionID == "" {
		session.SessionID = continuo.CrewWorkflow(session.Crew)
	}
	conversation, err := w.engine.Conversations.Find(ctx, session.Scope, session.SessionID)
	if err != nil {
		return nil, w.explained(session, err)
	}
	return &crewContexts{app: a, services: w, session: session, conversation: conversation}, nil
}

// show shows the context of one role.
func (l *crewContexts) show(ctx context.Context, query engine.RoleContextQuery) error {
	if query.Request != 0 {
		return l.showRequest(ctx, query)
	}
	shown, err := l.engine.Contexts.Build(ctx, l.conversation, engine.ContextRequest{
		View: engine.RoleViewPrefix + query.Role, Crew: l.session.Crew, At: query.At, System: l.system,
	})
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		return l.app.json(shown)
	}
	where := fmt.Sprintf("now, at entry %s", term.Number(shown.Plan.At))
	if query.At != 0 {
		where = fmt.Sprintf("as it was at entry %s of %s", term.Number(shown.Plan.At), term.Number(l.conversation.LastSeq))
	}
	return l.print(ctx, query, where, shown.Plan)
}

// showRequest shows a request to a role's model, and whether it can still be rebuilt.
func (l *crewContexts) showRequest(ctx context.Context, query engine.RoleContextQuery) error {
	replayed, err := l.engine.Crews.RoleRequest(ctx, l.session, query.Role, query.Request)
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		err = l.app.json(replayed)
	} else {
		where := fmt.Sprintf("as it was sent for entry %s, up to entry %s · %s", term.Number(query.Request), term.Number(replayed.Round.At), term.Size(int64(replayed.Round.RequestBytes)))
		if replayed.Same {
			where += ", the same bytes now"
		}
		err = l.print(ctx, query, where, replayed.Plan)
	}
	switch {
	case err != nil:
		return err
	case len(replayed.Redacted) > 0:
		return fmt.Errorf("the request of entry %d has other bytes now than when it was sent: what it shows of %s was redacted since (%s)",
			query.Request, term.Count(len(replayed.Redacted), "entry"), seqRangesText(replayed.Redacted))
	case !replayed.Same:
		return fmt.Errorf("the request of entry %d has other bytes now than when it was sent", query.Request)
	}
	return nil
}

// print prints what a role sees.
func (l *crewContexts) print(ctx context.Context, query engine.RoleContextQuery, where string, plan *window.Plan) error {
	text := crews.RoleText(plan)
	if l.system {
		both, err := l.engine.Crews.CompareRoles(ctx, l.session, query, query)
		if err != nil {
			return l.explained(l.session, err)
		}
		text = both.Left.Text
	}
	if l.raw {
		l.text(text)
		return nil
	}
	l.app.print("%s  %s", l.paint.Bold(term.OneLine(query.Role, 60)), l.paint.Dim("of "+l.session.Crew+" · "+where))
	l.app.print("%s", l.paint.Dim(planText(plan)))
	l.app.print("")
	if l.plan {
		l.showUse(plan)
		l.app.print("")
		if err := l.showPlan(ctx, l.services, l.conversation, plan); err != nil {
			return err
		}
		l.app.print("")
	}
	if text == "" {
		l.app.print("%s", l.paint.Dim("It would be shown nothing."))
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		l.app.print("%s", l.line(line))
	}
	return nil
}

// line is a line of a role's text with its structural parts coloured: no line of a message can look like them.
func (l *crewContexts) line(line string) string {
	line = l.shown(line)
	if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") || strings.HasPrefix(line, "[MORE]") {
		return l.paint.Dim(line)
	}
	if !strings.HasPrefix(line, "User: ") && !strings.HasPrefix(line, "User (") && !strings.HasPrefix(line, "Assistant: ") && !strings.HasPrefix(line, "Assistant (") {
		return line
	}
	label, rest, _ := strings.Cut(line, ": ")
	return l.paint.Bold(label+":") + " " + rest
}

// planText summarizes what a role sees.
func planText(plan *window.Plan) string {
	words := contextLine(plan)
	if role := plan.Role; role != nil {
		words = fmt.Sprintf("view %s · cursor %s, %s with its answer · %s new", role.Kind, term.Number(role.Cursor), term.Number(role.Through), term.Number(role.News))
		if role.Waiting > 0 {
			words += fmt.Sprintf(", %s more wait for a summary before its next turn", term.Number(role.Waiting))
		}
		if role.Summarized > 0 {
			words += fmt.Sprintf(", %s of them by a summary", term.Number(role.Summarized))
		}
		words += " · " + term.OfLimit(plan.Totals.Tokens, plan.Limits.Tokens, "token")
	}
	return words
}
