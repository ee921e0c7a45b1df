package contexts

import (
	"context"
	"fmt"
	"slices"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/recalls"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// checkQuery refuses what cannot be combined with a query.
func checkQuery(request Request) error {
	switch {
	case request.View == catalog.RecallView && request.Query == "" && request.At != 0:
		return fmt.Errorf("the view %s at an earlier entry: %w: it needs a query", catalog.RecallView, continuo.ErrInvalid)
	case request.Scope != "" && !slices.Contains(lookup.Scopes(), request.Scope):
		return fmt.Errorf("scope %q: %w; allowed: conversation, user, project", request.Scope, continuo.ErrInvalid)
	case request.Passages && request.View != catalog.RecallView:
		return fmt.Errorf("passages in the view %s: %w: only the view %s has them on request", request.View, continuo.ErrInvalid, catalog.RecallView)
	case request.Query == "" || request.View == catalog.RecallView:
		return nil
	case request.RunID != "" || request.At != 0:
		return fmt.Errorf("a query with a run or an earlier entry: %w: a query stands for the next message", continuo.ErrInvalid)
	}
	return nil
}

// sourceOf returns the log that a request reads, up to a seq: with a query, that is the next message, and what a turn would
// recall for it.
func (cx *Contexts) sourceOf(ctx context.Context, runner *turn.Runner, conversation continuo.Conversation, query string, at int64) (window.Source, int64, error) {
	source := turn.Source{Context: ctx, Log: cx.log, Conversation: conversation}
	if query == "" {
		return source, at, nil
	}
	more, err := cx.recalls.Ahead(ctx, runner, conversation, continuo.Text(query))
	if err != nil {
		return nil, 0, err
	}
	return turn.Ahead{Source: source, More: more}, at + int64(len(more)), nil
}

// recallView builds the view recall: the entries that a query needs most, as far as they fit into the limit of tokens.
func (cx *Contexts) recallView(ctx context.Context, conversation continuo.Conversation, at int64, chosen catalog.ResolvedTurn, request Request) (*window.Plan, error) {
	query := request.Query
	if query == "" {
		newest, err := cx.log.LatestUser(ctx, conversation, at)
		if err != nil {
			return nil, fmt.Errorf("the view %s needs a query, or a message of a user: %w", catalog.RecallView, err)
		}
		query = newest.Content.String()
	}
	counter, _ := token.ForModel(chosen.Upstream.Model.Info().Name)
	limits := chosen.View.Limits
	shown, err := cx.recalls.View(ctx, recalls.ViewRequest{
		Request: lookup.Request{Text: query, Conversation: conversation, Scope: request.Scope, To: at, Patience: recalls.ViewPatience, Vectors: true},
		Tokens:  limits.Tokens, Counter: counter, Passages: request.Passages,
	})
	if err != nil {
		return nil, err
	}
	plan := &window.Plan{View: catalog.RecallView, ViewHash: chosen.View.Hash(), At: at, Ranker: shown.Ranker}
	plan.Limits = continuo.Size{Tokens: limits.Tokens}
	if shown.Text != "" {
		plan.Messages = []window.Message{{Role: continuo.User, Content: continuo.Text(shown.Text), Size: shown.Size}}
	}
	var own, others []window.PlanItem
	for _, item := range shown.Items {
		if item.Recall.ConversationID == "" {
			own = append(own, item)
		} else {
			others = append(others, item)
		}
	}
	plan.Items = window.Fold(own, at, window.ReasonNotRecalled)
	plan.Totals = window.Totals(plan)
	plan.Items = append(plan.Items, others...)
	return plan, nil
}

// ExplainRecall says what a turn with the request's query would recall, and why. The request's view is one that recalls.
func (cx *Contexts) ExplainRecall(ctx context.Context, conversation continuo.Conversation, request Request, of recalls.ExplainRequest) (*recalls.Explanation, error) {
	if request.Query == "" || request.View == catalog.RecallView {
		return nil, fmt.Errorf("explain a recall: %w: it needs a message, and a view of turns", continuo.ErrInvalid)
	}
	chosen, err := cx.chooseReader(ctx, conversation, request, conversation.LastSeq)
	if err != nil {
		return nil, err
	}
	if chosen.View, err = limited(chosen.View, request); err != nil {
		return nil, err
	}
	made, err := cx.recalls.Explain(ctx, cx.catalog.Runner(chosen), conversation, continuo.Text(request.Query), of)
	if err == nil {
		made.View = chosen.ViewName
	}
	return made, err
}
