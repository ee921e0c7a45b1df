package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/internal/term"
)

type recallCommand struct {
	Explain explainRecallCommand `cmd:"" help:"Show what a turn would recall for a message, and why."`
}

type explainRecallCommand struct {
	Conversation string   `arg:"" name:"conv" help:"Which one: id, key or @1."`
	Query        []string `arg:"" help:"The next message."`
	View         string   `placeholder:"VIEW" help:"The view of the turn: ${turnviews}, or role:NAME for a crew's role. Default: the agent's, else ${usualview}."`
	Crew         string   `placeholder:"CREW" help:"The role's crew. Default: the one that answered last."`
	MaxTokens    *int     `placeholder:"N" help:"Another limit of the view on tokens; 0 for none."`
	Seq          int64    `placeholder:"SEQ" help:"Only this entry, whether it is ranked or not."`
	Limit        int      `default:"10" help:"How many entries of the ranking to show at most, up to 100."`
	Features     int      `default:"5" help:"How many features to show of each, those that count most."`
	JSON         bool     `help:"Write JSON, as the API does."`
}

func (explainRecallCommand) Help() string {
	return `Ranks the earlier entries of a conversation for a message as a turn does, and says of each what became of it: recalled, shown by the request anyway, below_threshold, no_room, too_little in common, not_recallable (hidden, redacted, a call, a result), or not_found. Below each are the features of its score, with what each adds to the logarithm of the odds. No model is asked and nothing is changed.

Examples:

    continuo recall explain s1 "What did we decide about the schema?"
    continuo recall explain s1 "Where do I live?" --seq 12 --features 20
    continuo recall explain crew:example "Where do I live?" --view role:builder
    continuo recall explain s1 "Where do I live?" --json | jq '.entries[0].features'`
}

// Run explains.
func (c *explainRecallCommand) Run(ctx context.Context, a *app, w *services) error {
	switch {
	case c.Limit < 1 || c.Limit > 100:
		return usage("--limit: given %d; allowed: 1 to 100", c.Limit)
	case c.Seq < 0:
		return usage("--seq %d: seqs begin with 1", c.Seq)
	}
	conversation, err := w.find(ctx, c.Conversation)
	if err != nil {
		return err
	}
	request := engine.ContextRequest{Query: strings.Join(c.Query, " "), View: c.View, Crew: c.Crew, UsualView: usualView, MaxTokens: c.MaxTokens}
	made, err := w.engine.Contexts.ExplainRecall(ctx, conversation, request, recalls.ExplainRequest{Seq: c.Seq, Limit: c.Limit})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.json(made)
	}
	a.print("%s  view %s, %d candidates, %d tokens, threshold %.2f, ranker %s", a.paint.Bold(string(made.Outcome)), made.View, made.Candidates, made.Tokens, float64(made.Threshold)/1e6, made.Ranker)
	for _, entry := range made.Entries {
		rank := "-"
		if entry.Rank > 0 {
			rank = fmt.Sprint(entry.Rank)
		}
		a.print("%s %s %s %.3f  %s", rank, a.paint.Cyan(fmt.Sprintf("#%d", entry.Seq)), a.paint.Bold(string(entry.Outcome)), float64(entry.Score)/1e6, term.OneLine(strings.Join(entry.Words, " "), 80))
		if entry.ConversationID != "" {
			a.print("    of %s", entry.ConversationID)
		}
		if entry.Reranked > 0 {
			a.print("    place %d of the reranker", entry.Reranked)
		}
		for _, part := range entry.Features[:min(len(entry.Features), max(0, c.Features))] {
			a.print("    %+.2f  %s %.2f × %.2f", part.Adds, part.Feature, part.Value, part.Weight)
		}
	}
	return nil
}
