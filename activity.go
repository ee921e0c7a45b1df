package continuo

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Activity is what a list shows of a conversation beside its own fields. It is kept with every write, so that reading it
// does not depend on the conversation's length.
type Activity struct {
	ConversationID string
	// Children counts the conversations that name this one as their parent: forks, and calls beside it.
	Children int
	// Turn is the newest turn that is not void; its ID is empty for none.
	Turn Turn
	// Run is the newest run that has not ended; its ID is empty for none.
	Run Run
	// Usage are the requests of the conversation's own entries, ordered by the newest request.
	Usage []UsageCount
}

// UsageCount counts the requests to one model on one day.
type UsageCount struct {
	Day              string // of the answers, in UTC, as 2006-01-02
	Model            string // as the provider names it
	Requests         int64
	InputTokens      int64 // with the cached ones
	CachedTokens     int64
	CacheWriteTokens int64
	OutputTokens     int64
	// CostNano is what the requests with a price cost, in billionths of a US dollar; Priced counts them.
	CostNano, Priced int64
	// LastSeq is the seq of the newest answer, Shares the cached shares of the newest requests; see SharesOf. Both are
	// empty in sums over conversations.
	LastSeq int64
	Shares  string
}

// ActivityStore keeps the activity of conversations.
type ActivityStore interface {
	// Activities returns the activities of conversations that are not deleted, in any order; unknown ids are left out.
	Activities(ctx context.Context, ids []string) ([]Activity, error)
	// Totals counts the conversations that a query selects and adds up their usage, by day and model, in this order. Limit
	// and Before are not read.
	Totals(ctx context.Context, query ConversationQuery) (Totals, error)
}

// Totals are sums over conversations.
type Totals struct {
	Conversations int64
	Usage         []UsageCount
}

// ActivityState selects conversations by their activity.
type ActivityState string

// The states of activity. An active conversation has a turn that runs, or a run that runs or waits; in a failed one the
// newest turn failed.
const (
	ActivityActive ActivityState = "active"
	ActivityFailed ActivityState = "failed"
	ActivityIdle   ActivityState = "idle"
)

// The form of [UsageCount.Shares]: for each request, the oldest first, three characters, which are its cached tokens in per
// cent of its input, or unknownShare. At most MaxShares requests.
const (
	MaxShares    = 24
	shareWidth   = 3
	unknownShare = "---"
	// MaxSharesText is the length of the longest Shares.
	MaxSharesText = MaxShares * shareWidth
)

// UsageOf counts the requests that entries of one conversation answer, by day and model. A batch has few of both.
func UsageOf(entries []Entry) []UsageCount {
	var counts []UsageCount
	for i := range entries {
		if entries[i].Round != nil {
			counts = countUsage(counts, &entries[i])
		}
	}
	return counts
}

func countUsage(counts []UsageCount, entry *Entry) []UsageCount {
	day, round := entry.CreatedAt.UTC().Format("2006-01-02"), entry.Round
	one := UsageCount{Day: day, Model: round.Model, Requests: 1, LastSeq: entry.Seq, Shares: unknownShare}
	if used := round.Usage; used != nil {
		one.InputTokens, one.CachedTokens = int64(used.InputTokens), int64(used.CachedTokens)
		one.CacheWriteTokens, one.OutputTokens = int64(used.CacheWriteTokens), int64(used.OutputTokens)
		if used.InputTokens > 0 {
			one.Shares = fmt.Sprintf("%03d", min(max(100*used.CachedTokens/used.InputTokens, 0), 100))
		}
		if used.Cost.Currency == USD {
			one.CostNano, one.Priced = used.Cost.Nano, 1
		}
	} else if entry.Error != nil && entry.Content.IsEmpty() && entry.Reasoning == nil && len(entry.ToolCalls)+len(entry.Error.PartialToolCalls) == 0 {
		one.Priced = 1 // a request that was refused costs nothing
	}
	return AddUsage(counts, one)
}

// Add adds later requests of the same model on the same day.
func (c *UsageCount) Add(later UsageCount) {
	c.Requests += later.Requests
	c.InputTokens += later.InputTokens
	c.CachedTokens += later.CachedTokens
	c.CacheWriteTokens += later.CacheWriteTokens
	c.OutputTokens += later.OutputTokens
	c.CostNano += later.CostNano
	c.Priced += later.Priced
	c.LastSeq = max(c.LastSeq, later.LastSeq)
	c.Shares += later.Shares
	c.Shares = c.Shares[max(0, len(c.Shares)-MaxSharesText):]
}

// AddUsage adds a count to those of the same day and model, so that a batch has one of each.
func AddUsage(counts []UsageCount, later UsageCount) []UsageCount {
	at := slices.IndexFunc(counts, func(c UsageCount) bool { return c.Day == later.Day && c.Model == later.Model })
	if at < 0 {
		return append(counts, later)
	}
	counts[at].Add(later)
	return counts
}

// SharesOf are the cached shares of the newest requests that counts have, from 0 to 1, the oldest first; -1 is unknown. Of
// several models on one day, the requests of each follow each other.
func SharesOf(counts []UsageCount) []float64 {
	var text strings.Builder
	for _, count := range counts {
		text.WriteString(count.Shares)
	}
	all := text.String()
	all = all[max(0, len(all)-MaxSharesText):]
	shares := make([]float64, 0, len(all)/shareWidth)
	for ; len(all) >= shareWidth; all = all[shareWidth:] {
		share, per := -1.0, 0
		if _, err := fmt.Sscanf(all[:shareWidth], "%d", &per); err == nil {
			share = float64(per) / 100
		}
		shares = append(shares, share)
	}
	return shares
}

// Activities returns the activities of conversations; see [ActivityStore].
func (l *Log) Activities(ctx context.Context, ids []string) ([]Activity, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := l.store.Activities(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("activities: %w", err)
	}
	return found, nil
}

// Totals counts conversations and adds up their usage; see [ActivityStore].
func (l *Log) Totals(ctx context.Context, query ConversationQuery) (Totals, error) {
	totals, err := l.store.Totals(ctx, query)
	if err != nil {
		return Totals{}, fmt.Errorf("totals: %w", err)
	}
	return totals, nil
}
