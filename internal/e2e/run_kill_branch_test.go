package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// runLog is a conversation in which steps of runs were executed: that of a run client, or a branch of it.
type runLog struct {
	*chatClient
	entries []continuo.Entry
	fork    int64 // how many of them are of the conversation that a branch was forked from
}

// ownEntries are the entries that are the line's own.
func (l runLog) ownEntries() []continuo.Entry { return l.entries[l.fork:] }

// ofRun are the entries of a run.
func ofRun(entries []continuo.Entry, run *clientRun) []continuo.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e continuo.Entry) bool { return e.RunID != run.id })
}

// readBranches reads the branches that the events of a conversation name, and checks that each is of one visit of a
// step: what an attempt does is in one turn, and nothing is done after the visit has finished.
func (j *runClient) readBranches(ctx context.Context, k *killable, entries []continuo.Entry) (branches []runLog) {
	for _, e := range entries {
		if e.RunEvent == nil || e.RunEvent.Branch == "" || slices.ContainsFunc(branches, func(l runLog) bool { return l.key == e.RunEvent.Branch }) {
			continue
		}
		branch := newChatClient(j.t, nil, nil, j.random, e.RunEvent.Branch)
		var shown continuo.Conversation
		if status, err := k.get(ctx, branch.path(""), &shown); err != nil || status != http.StatusOK {
			j.errorf("entry %d: the branch %s: status %d, %v", e.Seq, branch.key, status, err)
			continue
		}
		if shown.Kind != continuo.KindBranch || shown.ForkSeq >= e.Seq {
			j.errorf("entry %d: the branch %s has the kind %q, and was forked at %d", e.Seq, branch.key, shown.Kind, shown.ForkSeq)
		}
		all, err := branch.readLog(ctx, k)
		if err != nil || int64(len(all)) < shown.ForkSeq {
			j.errorf("%v; %d entries, forked at %d", err, len(all), shown.ForkSeq)
			continue
		}
		branches = append(branches, runLog{branch, all, shown.ForkSeq})
		j.checkBranch(branches[len(branches)-1], entries)
	}
	return branches
}

// checkBranch checks a branch beside the events of its run.
func (j *runClient) checkBranch(branch runLog, entries []continuo.Entry) {
	attempts, visits, ended := 0, map[string]bool{}, continuo.Entry{}
	for _, e := range entries {
		if e.RunEvent == nil {
			continue
		}
		visit := e.RunID + "/" + visitOf(&e, e.RunEvent.Visit)
		switch {
		case e.RunEvent.Kind == continuo.RunNodeBegan && e.RunEvent.Branch == branch.key:
			attempts++
			visits[visit] = true
		case e.RunEvent.Kind == continuo.RunNodeFinished && visits[visit]:
			ended = e
		}
	}
	if len(visits) != 1 {
		branch.errorf("is the branch of the visits %v", visits)
	}
	var turns []string
	for _, e := range branch.ownEntries() {
		if !slices.Contains(turns, e.TurnID) {
			turns = append(turns, e.TurnID)
		}
		if e.RunID != ended.RunID || e.NodeID != ended.NodeID || e.CreatedAt.After(ended.CreatedAt) {
			branch.errorf("entry %d of run %s, step %s, is of %s; the step %s of run %s finished at %s", e.Seq, e.RunID, e.NodeID, e.CreatedAt, ended.NodeID, ended.RunID, ended.CreatedAt)
		}
	}
	if len(turns) > attempts {
		branch.errorf("has %d turns of %d attempts", len(turns), attempts)
	}
}

// isParallel reports whether a visit of a step is executed beside others, and so in a branch.
func isParallel(visit string) bool {
	for _, want := range expectedRuns {
		if slices.Contains(want.beside, visit) {
			return true
		}
	}
	return false
}

// inAnyOrder puts those of the finished visits that are executed beside each other in order: which of them comes
// first is left to chance. They follow one another.
func inAnyOrder(finished, beside []string) {
	is := func(visit string) bool { return slices.Contains(beside, visit) }
	if first := slices.IndexFunc(finished, is); first >= 0 {
		slices.Sort(finished[first:min(first+len(beside), len(finished))])
	}
}

// logOf names the line that a request is of: a step beside others has its own, which begins as the conversation's.
func (s *stepRequest) logOf(conversation string) string {
	if visit := fmt.Sprintf("%s/%d", s.step, s.visit); isParallel(visit) {
		return conversation + "/" + s.run + "/" + visit
	}
	return conversation
}
