package turn

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// isClientCall reports whether the client of the turn runs a call: every call that is not of one of the turn's tools.
func (c *toolLoop) isClientCall(call continuo.ToolCall) bool {
	if c.Forward != nil || c.ClientTools == nil {
		return c.Forward != nil
	}
	_, ours := c.find(call.Name)
	return !ours
}

// callsClient reports whether an answer has a call that the client runs.
func (c *toolLoop) callsClient(answer *continuo.Entry) bool {
	return slices.ContainsFunc(answer.ToolCalls, c.isClientCall)
}

// serverCalls returns the calls of an answer that the turn runs itself.
func (c *toolLoop) serverCalls(answer *continuo.Entry) []continuo.ToolCall {
	return slices.DeleteFunc(slices.Clone(answer.ToolCalls), c.isClientCall)
}

// isLast reports whether an answer ends its turn: it has no calls, or only calls that the client runs.
func (c *toolLoop) isLast(answer *continuo.Entry) bool {
	return len(answer.ToolCalls) == 0 || answer.Error == nil && len(c.serverCalls(answer)) == 0
}

// finish ends a turn whose answer waits for the client's results.
func (c *toolLoop) finish(answer *continuo.Entry) error {
	return c.journal.retry(c.journal.ctx, func() error {
		_, err := c.append(nil, func([]continuo.Entry) []Event {
			return []Event{{Kind: Finished, Entry: answer, Plan: c.newestPlan, Usage: c.usage}}
		}, ends(continuo.TurnFinished, continuo.TurnEnd{Usage: c.usage}))
		return err
	})
}

// resultsOf returns the results that entries begin with.
func resultsOf(entries []continuo.Entry) []continuo.Entry {
	for i := range entries {
		if entries[i].Role != continuo.Tool {
			return entries[:i]
		}
	}
	return entries
}

// unanswered returns the results that a turn's input begins with, and after them the results, given for all open calls,
// of those that it leaves open.
func unanswered(open, input []continuo.Entry) []continuo.Entry {
	results := slices.Clone(resultsOf(input))
	for _, result := range open {
		if !slices.ContainsFunc(results, func(entry continuo.Entry) bool { return entry.ToolCallID == result.ToolCallID }) {
			results = append(results, result)
		}
	}
	return results
}

// withResults checks the results that the entries of a client's request begin with against the open calls. A request that
// is built needs all of them, and no others. Of one that is forwarded the provider decides: a result of no open call is
// hidden there.
func (r *Runner) withResults(entries, open []continuo.Entry) ([]continuo.Entry, error) {
	results := resultsOf(entries)
	answers := func(call *continuo.Entry) bool {
		return slices.ContainsFunc(results, func(result continuo.Entry) bool { return result.ToolCallID == call.ToolCallID })
	}
	if r.Forward == nil {
		for i := range open {
			if len(entries) > 0 && !answers(&open[i]) {
				return nil, &continuo.RuleError{Rule: continuo.RuleUnanswered, Message: fmt.Sprintf(
					"there is no result of the call %s: send the results of all calls of the newest answer, before anything else", open[i].ToolCallID)}
			}
		}
		return entries, nil
	}
	var repaired []continuo.Entry
	for i := range results {
		ofCall := func(call continuo.Entry) bool { return call.ToolCallID == results[i].ToolCallID }
		again := slices.ContainsFunc(results[:i], ofCall)
		if results[i].Hidden || slices.ContainsFunc(open, ofCall) && !again {
			continue
		}
		if repaired == nil {
			repaired = slices.Clone(entries)
		}
		repaired[i].Hidden, repaired[i].Repairs = true, append(slices.Clone(results[i].Repairs), string(continuo.RuleOrphanTool))
	}
	if repaired != nil {
		return repaired, nil
	}
	return entries, nil
}
