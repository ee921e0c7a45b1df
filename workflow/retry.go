package workflow

import (
	"fmt"
	"hash/fnv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/backoff"
)

// The waits between attempts that break off in a row: the first, doubled each time, up to the last.
const (
	firstWait = time.Second
	lastWait  = 10 * time.Minute
)

// atOnce is how many attempts in a row are retried without a wait after a mere interruption, such as the end of the
// process.
const atOnce = 3

// AttemptFailed makes the entries that follow an attempt that broke off: when the next one begins, or that the step has
// failed. There are none where the next attempt begins at once.
func (s *State) AttemptFailed(step Step, why continuo.TurnError, now time.Time) []continuo.Entry {
	node := s.nodes[step.Node.ID]
	failures := node.failedAttempts + 1
	if why.Reason == continuo.ReasonInterrupted && failures <= min(atOnce, step.Node.Retry.Max) {
		return nil
	}
	reason := fmt.Sprintf("%s: %s", why.Reason, why.Message)
	switch {
	case !why.Retryable:
		return s.fails(step, fmt.Sprintf("the step %s failed (%s): %s", step.Node.ID, why.Reason, why.Message))
	case failures > step.Node.Retry.Max:
		return s.fails(step, fmt.Sprintf("the step %s failed %d times in a row, more than retry.max allows; the last time (%s): %s", step.Node.ID, failures, why.Reason, why.Message))
	case !node.since.IsZero() && now.Sub(node.since) >= step.Node.Retry.For:
		return s.fails(step, fmt.Sprintf("the step %s failed for longer than retry.for, %s; the last time (%s): %s", step.Node.ID, step.Node.Retry.For, why.Reason, why.Message))
	}
	until := now.Add(max(s.wait(step, failures), time.Duration(why.RetryAfter)*time.Second)).UTC()
	event := continuo.RunEvent{Kind: continuo.RunNodeDelayed, Visit: step.Visit, Attempt: step.Attempt, Reason: reason, Until: until}
	return []continuo.Entry{s.event(step.Node.ID, event,
		fmt.Sprintf("The step %s waits to retry until %s, because of %s", step.Node.ID, until.Format(time.RFC3339), reason))}
}

// wait is the wait after so many attempts that broke off in a row. It has a jitter of up to a quarter, so that steps
// which broke off together do not retry together.
func (s *State) wait(step Step, failures int) time.Duration {
	whole := backoff.Doubled(firstWait, lastWait, failures)
	hash := fnv.New32a()
	_, _ = fmt.Fprintf(hash, "%s/%s/%d/%d", s.RunID, step.Node.ID, step.Visit, step.Attempt)
	return whole + whole*time.Duration(hash.Sum32()%1000)/4000
}

// fails makes the entries of a failed step, and those that follow.
func (s *State) fails(step Step, reason string) []continuo.Entry {
	failed := s.Fail(step.Node, reason)
	return append([]continuo.Entry{failed}, s.Clone().after(failed)...)
}

// Fail makes the entry of a step that cannot continue until a person resumes the run.
func (s *State) Fail(node *Node, reason string) continuo.Entry {
	progress := s.nodes[node.ID]
	event := continuo.RunEvent{Kind: continuo.RunNodeFailed, Visit: progress.visit, Attempt: progress.attempt, Reason: reason}
	return s.event(node.ID, event, fmt.Sprintf("The step %s has failed: %s", node.ID, reason))
}

// after makes the entries that follow another one without a turn. It changes the state.
func (s *State) after(entry continuo.Entry) []continuo.Entry {
	if s.Apply(&entry) != nil {
		return nil
	}
	return s.Record()
}

// hasFailed reports whether a step has failed since the run was last resumed: then no step begins, and running ones
// continue.
func (s *State) hasFailed() bool { return s.failed() != nil }

// failed is the first failed node in the order of the file; nil for none.
func (s *State) failed() *progress {
	for i := range s.Workflow.Nodes {
		if node := s.nodes[s.Workflow.Nodes[i].ID]; node.state == NodeFailed {
			return node
		}
	}
	return nil
}

// Retries reports whether a step waits for a retry.
func (s *State) Retries() bool {
	for _, node := range s.nodes {
		if node.state == NodeRunning && !node.delayed.IsZero() {
			return true
		}
	}
	return false
}
