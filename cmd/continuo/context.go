package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine/catalog"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/window"
)

type contextCommand struct {
	Show contextShowCommand `cmd:"" help:"Show a view of a conversation: the plan and the rendering."`
}

type contextShowCommand struct {
	Conversation string  `arg:"" name:"conv" help:"Which one: id, key or @1."`
	View         *string `placeholder:"VIEW" help:"The view to build: ${allviews}, or role:NAME for the view of a crew's role. Default: the agent's, else ${usualview}."`
	Crew         string  `placeholder:"CREW" help:"The role's crew. Default: the one that answered last at that entry."`
	Format       *string `enum:"openai,anthropic,transcript,handoff" help:"Show the rendering too, in this form: openai, anthropic, transcript, or, of the view handoff alone, handoff."`
	Query        string  `placeholder:"TEXT" help:"The next message: show the request that it would get, with the entries that would be recalled for it. In the view recall, what to recall for. Nothing is appended."`
	Scope        string  `enum:"conversation,user,project" default:"conversation" help:"Where the view recall looks: conversation, user or project."`
	Passages     bool    `help:"In the view recall, show of long entries the part that the query needs most, so that more entries fit."`
	At           seq     `placeholder:"SEQ" help:"Show it as it was up to this entry. Default: the newest."`
	MaxMessages  *int    `placeholder:"N" help:"Another limit on messages; 0 for none."`
	MaxChars     *int    `placeholder:"N" help:"Another limit on characters; 0 for none."`
	MaxTokens    *int    `placeholder:"N" help:"Another limit on tokens; 0 for none."`
	Model        string  `placeholder:"NAME" help:"The model whose tokenizer counts. Default: the default model."`
	Agent        string  `placeholder:"AGENT" help:"The agent whose context to show: an agent of the settings. Default: the conversation's, in the modes agent and run."`
	Step         string  `name:"run" placeholder:"RUN" help:"Show the request of the next step of this run: the run's id, the beginning of it, or @1."`
	System       bool    `help:"Put the mode's system messages into the rendering, and those of the run's step."`
	Rendering    bool    `help:"Show the rendering too, in the view's own form."`
	Raw          bool    `help:"Write the rendering alone, byte for byte."`
	Request      int64   `placeholder:"SEQ" help:"Rebuild the request that led to this answer, and compare its bytes."`
	JSON         bool    `help:"Write JSON, as the API does: {conversation_id, view, format, messages or text, plan}; with --request {body, sha256, same, redacted, round, plan}."`
}

func (contextShowCommand) Help() string {
	return `The context audit: what a model would be shown of a conversation now, or was shown earlier, and for every entry why it is in or out. No model is called and nothing is changed. With --request it makes the request again that an earlier answer came of, and compares its hash with the one in the log; exit code 1 says that they differ. Where entries were redacted since, it says which.

Examples:

    continuo context show s1
    continuo context show s1 --view codex --max-tokens 2000
    continuo context show s1 --query "What did we decide about the schema?"
    continuo context show s1 --view recall --query "What did we decide about the schema?" --raw
    continuo context show s1 --view replay --raw
    continuo context show s1 --view handoff --raw
    continuo context show s1 --at 40 --format anthropic --system
    continuo context show s1 --agent reviewer --system --rendering
    continuo context show s1 --run run_0199c3 --system --rendering
    continuo context show s1 --request 12
    continuo context show crew:example --view role:builder --system --rendering
    continuo context show s1 --json | jq .plan.totals`
}

// Run shows the context or an earlier request.
func (c *contextShowCommand) Run(ctx context.Context, a *app, w *services) error {
	conversation, err := w.find(ctx, c.Conversation)
	if err != nil {
		return err
	}
	if c.Request != 0 {
		return c.request(ctx, a, w, conversation)
	}
	if err := checkAgent(w.settings, c.Agent); err != nil {
		return err
	}
	request := engine.ContextRequest{
		Query: c.Query, Scope: lookup.Scope(c.Scope), Passages: c.Passages, UsualView: usualView, AgentID: c.Agent, At: int64(c.At), MaxMessages: c.MaxMessages, MaxChars: c.MaxChars, MaxTokens: c.MaxTokens, Model: c.Model, System: c.System, Crew: c.Crew,
	}
	if c.View != nil {
		request.View = *c.View
	}
	if err := c.checkView(); err != nil {
		return err
	}
	if c.Step != "" {
		run, err := w.findRun(ctx, c.Step, runChoice{})
		if err != nil {
			return err
		}
		request.RunID = run.ID
	}
	if c.Format != nil {
		request.Format = engine.Format(*c.Format)
	}
	shown, err := w.engine.Contexts.Build(ctx, conversation, request)
	if err != nil {
		return err
	}
	switch {
	case c.Raw:
		return a.rawContext(shown)
	case c.JSON:
		return a.json(api.ConversationContext{ConversationID: conversation.ID, Context: shown})
	}
	return c.show(ctx, a, w, conversation, shown)
}

// checkView refuses an unknown view, and flags that do not apply to a role's view or a run's step.
func (c *contextShowCommand) checkView() error {
	view := ""
	if c.View != nil {
		view = *c.View
	}
	role, ofRole := strings.CutPrefix(view, engine.RoleViewPrefix)
	switch {
	case c.Step != "" && (ofRole || c.Agent != "" || c.Model != ""):
		return usage("--run shows what the run's step is sent: leave --agent, --model and the view of a role out")
	case ofRole && role == "":
		return usage("--view %s: name a role, such as %sbuilder; continuo crew list shows them", view, engine.RoleViewPrefix)
	case ofRole && (c.Agent != "" || c.Model != ""):
		return usage("--view %s is what the role's own model is shown: leave --agent and --model out", term.OneLine(view, 60))
	case !ofRole && c.Crew != "":
		return usage("--crew says of which crew a role is: give --view %sNAME", engine.RoleViewPrefix)
	case view != "" && !ofRole && !slices.Contains(catalog.ViewNames(), view):
		return usage("--view: given %q; allowed: %s or %sNAME for a role of a crew", term.OneLine(view, 60), strings.Join(catalog.ViewNames(), ", "), engine.RoleViewPrefix)
	}
	return nil
}

// show prints the summary, the plan, and the rendering if it was requested.
func (c *contextShowCommand) show(ctx context.Context, a *app, w *services, conversation continuo.Conversation, shown *engine.Context) error {
	a.print("%s", a.paint.Bold(titleOf(conversation)))
	a.print("%s", a.paint.Dim(fmt.Sprintf("view %s · %s · %s", term.OneLine(shown.View, 80), placeText(shown.Plan.At, conversation.LastSeq), contextLine(shown.Plan))))
	if shown.Plan.Role != nil {
		a.print("%s", a.paint.Dim(planText(shown.Plan)))
	}
	a.print("")
	a.showUse(shown.Plan)
	a.print("")
	if err := a.showPlan(ctx, w, conversation, shown.Plan); err != nil {
		return err
	}
	if !c.Rendering && c.Format == nil {
		return nil
	}
	a.print("\n%s", a.paint.Dim("rendering: "+string(shown.Format)))
	return a.showRendering(shown.Messages, shown.Text)
}

// rawContext writes only a rendering.
func (a *app) rawContext(shown *engine.Context) error {
	if shown.Messages == nil {
		a.text(shown.Text)
		return nil
	}
	var list strings.Builder
	for i, message := range shown.Messages {
		if i > 0 {
			list.WriteByte(',')
		}
		list.Write(message)
	}
	a.text("[" + list.String() + "]\n")
	return nil
}

// request rebuilds and shows the request of an earlier round.
func (c *contextShowCommand) request(ctx context.Context, a *app, w *services, conversation continuo.Conversation) error {
	replayed, err := w.engine.Contexts.Request(ctx, conversation, c.Request)
	if err != nil {
		return err
	}
	differs := error(nil)
	switch {
	case len(replayed.Redacted) > 0:
		differs = fmt.Errorf("the request of entry %d has other bytes now than when it was sent: what it shows of %s was redacted since (%s)",
			c.Request, term.Count(len(replayed.Redacted), "entry"), seqRangesText(replayed.Redacted))
	case !replayed.Same && isProfileRemoved(replayed.Plan):
		differs = fmt.Errorf("the request of entry %d has other bytes now than when it was sent: the profile of its user was removed since", c.Request)
	case !replayed.Same:
		differs = fmt.Errorf("the request of entry %d has other bytes now than when it was sent", c.Request)
	}
	switch {
	case c.Raw:
		a.text(string(replayed.Body))
		return differs
	case c.JSON:
		if err := a.json(replayed); err != nil {
			return err
		}
		return differs
	}
	round := replayed.Round
	a.print("%s  %s", a.paint.Bold(fmt.Sprintf("the request that entry %s answers", term.Number(c.Request))), a.paint.Dim(contextLine(replayed.Plan)))
	a.print("%s", a.paint.Dim(fmt.Sprintf("%s · view %s · up to entry %s · %s", answeredBy(round), round.View, term.Number(round.At), roundText(round))))
	if replayed.Same {
		a.print("%s the same bytes: %s, sha256 %s", a.paint.Green("✔"), term.Size(int64(len(replayed.Body))), replayed.SHA256)
	} else {
		a.print("%s other bytes: sent were %s, sha256 %s", a.paint.Red("✘"), term.Size(int64(round.RequestBytes)), round.RequestSHA256)
		a.print("  now there are %s, sha256 %s", term.Size(int64(len(replayed.Body))), replayed.SHA256)
		if len(replayed.Redacted) > 0 {
			a.print("  redacted since: %s", seqRangesText(replayed.Redacted))
		}
		if isProfileRemoved(replayed.Plan) {
			a.print("  removed since: the profile of its user")
		}
	}
	if p := replayed.Plan.Profile; p != nil {
		a.print("%s", a.paint.Dim("profile: "+profileText(p)))
	}
	a.print("")
	if err := a.showPlan(ctx, w, conversation, replayed.Plan); err != nil {
		return err
	}
	if c.Rendering || c.Format != nil {
		a.print("")
		if err := a.json(replayed.Body); err != nil {
			return err
		}
	}
	return differs
}

// isProfileRemoved reports whether a request showed a profile that was removed since.
func isProfileRemoved(plan *window.Plan) bool {
	return plan.Profile != nil && plan.Profile.Reason == window.ReasonProfileRemoved
}

// answeredBy names the provider and the model, once if both have the same name.
func answeredBy(round *continuo.Round) string {
	if round.Provider == round.Model {
		return term.OneLine(round.Model, 60)
	}
	return term.OneLine(round.Provider+" "+round.Model, 100)
}

// roundText formats the cost of a model request.
func roundText(round *continuo.Round) string {
	words := []string{term.Number(round.LatencyMS) + " ms"}
	if round.Usage != nil {
		words = append(words, term.Number(round.Usage.InputTokens)+" tokens in", term.Number(round.Usage.OutputTokens)+" out")
		if round.Usage.CachedTokens > 0 {
			words = append(words, term.Number(round.Usage.CachedTokens)+" cached")
		}
	}
	if round.FinishReason != "" {
		words = append(words, "ended by "+term.OneLine(round.FinishReason, 40))
	}
	return strings.Join(words, " · ")
}
