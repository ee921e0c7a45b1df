package recalls

import (
	"cmp"
	"context"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// maxAsked bounds for how many of a role's new messages entries are recalled: the user's newest one, and the newest others.
const maxAsked = 4

// forRole makes the block of a role of a crew, whose request is planned with the entries ahead. The role answers what is new to
// it: for each of these messages the entries before it that the request leaves out are ranked as for a message of a turn.
//
// The block follows the new messages in the log and in the role's window. It is made only if the request shows it, with
// everything that it would show without it. Messages before a block of the role have had their turn: an attempt that
// is repeated recalls nothing again.
func (r *Recalls) forRole(ctx context.Context, runner *turn.Runner, view *crewview.View, ahead turn.Ahead) (*continuo.Entry, error) {
	if view.RecallShare == 0 || r.finder.Store == nil {
		return nil, nil
	}
	plan, err := planned(ctx, runner, ahead)
	if err != nil || plan == nil || plan.Role.Waiting > 0 {
		return nil, err
	}
	space := roomIn(plan, ahead.Conversation, view.RecallShare)
	if r.options.Scope == lookup.Conversation && r.facts == nil && len(space.leftOut) == 0 {
		return nil, nil
	}
	asked, err := askedOf(plan, ahead)
	if err != nil {
		return nil, err
	}
	block, err := r.roleBlock(ctx, runner, view, space, asked)
	if err != nil || block == nil {
		return nil, err
	}
	if isShown, err := showsToo(ctx, runner, ahead, plan, *block); err != nil || !isShown {
		return nil, err
	}
	return block, nil
}

// roleBlock recalls entries for messages that are new to a role; nil where none is needed.
func (r *Recalls) roleBlock(ctx context.Context, runner *turn.Runner, view *crewview.View, space *room, asked []continuo.Entry) (*continuo.Entry, error) {
	var taken []chosenEntry
	var queries []string
	var seqs []int64
	var by string
	asked = slices.DeleteFunc(asked, func(one continuo.Entry) bool { return notAsked(head(one.Content.String(), maxQuery)) != "" })
	for i := range asked {
		query := head(asked[i].Content.String(), maxQuery)
		space.bar = r.barFor(query, len(asked))
		space.bar.messages++ // a role may answer another of the messages that are new to it
		if space.tokens < leastTokens || space.items == 0 {
			continue
		}
		chosen, ranker, err := r.recallFor(ctx, runner, space, query, asked[i])
		if err != nil {
			return nil, err
		}
		if len(chosen) == 0 {
			continue
		}
		space.take(chosen)
		taken, queries, seqs = append(taken, chosen...), append(queries, query), append(seqs, asked[i].Seq)
		by = cmp.Or(by, ranker)
	}
	if len(taken) == 0 {
		return nil, nil
	}
	inOrder(taken)
	slices.Sort(seqs)
	block := entryOf(strings.Join(queries, "\n"), space.conversation, r.options.Scope, by, taken, forRoles)
	block.Recall.Role, block.Recall.For = view.Role.Name, seqs
	if view.Role.Crew != "" {
		block.WorkflowID = continuo.CrewWorkflow(view.Role.Crew)
	}
	return block, nil
}

// recallFor chooses the entries that one message needs.
func (r *Recalls) recallFor(ctx context.Context, runner *turn.Runner, space *room, query string, message continuo.Entry) ([]chosenEntry, string, error) {
	var facts []lookup.Item
	if !runner.NoMemory && !message.NoMemory {
		var err error
		if facts, err = r.related(ctx, space.conversation, query); err != nil {
			return nil, "", err
		}
	}
	if r.options.Scope == lookup.Conversation && len(facts) == 0 && len(space.leftOut) == 0 {
		return nil, "", nil
	}
	request := r.request(space.conversation, query, facts, space)
	request.To = min(message.Seq-1, space.conversation.LastSeq) // what the message itself says is no candidate
	if request.To == 0 {
		request.Conversation.LastSeq = 0
	}
	items, err := r.finder.Find(ctx, request)
	if err != nil {
		return nil, "", err
	}
	return r.chooseReranked(ctx, items, space, query)
}

// askedOf lists the messages that are new to a role in a plan and that nothing was recalled for yet: the user's newest one
// first, then from the newest to the oldest.
func askedOf(plan *window.Plan, source window.Source) ([]continuo.Entry, error) {
	after := plan.Role.Cursor
	for _, block := range plan.Blocks() {
		after = max(after, block.Seq)
	}
	var asked []continuo.Entry
	user := -1
	for i := len(plan.Items) - 1; i >= 0; i-- {
		item := &plan.Items[i]
		isMessage := item.Verdict == window.Kept && item.Seq > after && (item.Role == continuo.User || item.Role == continuo.Assistant)
		isUsers := item.Role == continuo.User && user < 0
		if !isMessage || item.Reason != window.ReasonNew && item.Reason != window.ReasonOriginal || len(asked) == maxAsked && !isUsers {
			continue
		}
		entry, err := entryAt(source, item.Seq)
		if err != nil {
			return nil, err
		}
		if entry == nil || !lookup.Recallable(entry) || !isUsers && !recall.Asks(entry.Content.String()) {
			continue
		}
		if isUsers {
			user = len(asked)
		}
		asked = append(asked, *entry)
	}
	if user > 0 {
		newest := asked[user]
		asked = slices.Insert(slices.Delete(asked, user, user+1), 0, newest)
	}
	return asked[:min(len(asked), maxAsked)], nil
}

// entryAt reads one entry; nil for none.
func entryAt(source window.Source, seq int64) (*continuo.Entry, error) {
	for entry, err := range source.Forward(seq) {
		if err != nil || entry.Seq != seq {
			return nil, err
		}
		return entry, nil
	}
	return nil, nil
}

// showsToo reports whether a role's request shows a block too, and everything new that it shows without it.
func showsToo(ctx context.Context, runner *turn.Runner, ahead turn.Ahead, before *window.Plan, block continuo.Entry) (bool, error) {
	at := ahead.Conversation.LastSeq + int64(len(ahead.More)) + 1
	ahead.More = append(slices.Clone(ahead.More), placed(runner, block, at))
	plan, err := planned(ctx, runner, ahead)
	if err != nil || plan == nil {
		return false, err
	}
	isShown := slices.ContainsFunc(plan.Blocks(), func(shown *continuo.Entry) bool { return shown.Seq == at })
	return isShown && plan.Role.News == before.Role.News && plan.Role.Summarized == before.Role.Summarized && plan.Role.Waiting == 0, nil
}
