package maintenance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// runs are the runs of one conversation as its entries record them, by id.
type runs map[string]continuo.Run

// take applies the change of an entry, as every store does.
func (r runs) take(e *continuo.Entry) {
	if e.RunEvent == nil {
		return
	}
	for _, change := range continuo.RunChanges([]continuo.Entry{*e}) {
		run, begun := r[change.RunID]
		if change.Begins == begun { // it has begun already, or is unknown
			continue
		}
		if change.Begins {
			run = continuo.Run{ID: change.RunID, WorkflowID: change.WorkflowID, KeyID: change.KeyID, FirstSeq: change.Seq, StartedAt: change.At}
		}
		run.UpdatedAt = change.At
		if change.State != "" && !run.State.IsOver() {
			run.State = change.State
			if run.State.IsOver() {
				run.EndedAt = change.At
			}
		}
		r[change.RunID] = run
	}
}

// runTries bounds how often the index of runs is read again because its conversation changes in the meantime. A
// conversation that keeps changing is left to the next check.
const runTries = 10

// runIndex checks that the index of runs agrees with the entries.
func (w *walk) runIndex() error {
	through := w.last
	if w.record0.ID == "" { // reported already
		return nil
	}
	for range runTries {
		indexed, err := w.indexedRuns()
		if err != nil && !isOfTheStore(w.ctx, err) {
			return w.repairRuns([]Finding{{Kind: Unreadable, What: "the index of runs: " + err.Error(), Fix: w.reindexAdvice()}})
		}
		if err != nil {
			return err
		}
		wrong := w.wrongRuns(indexed)
		if len(wrong) == 0 {
			return nil
		}
		settled, err := w.settled(&through)
		if err != nil {
			return err
		}
		if settled {
			return w.repairRuns(wrong)
		}
	}
	return nil
}

// repairRuns reports a wrong index, and has it rebuilt if that is wanted and all entries are there.
func (w *walk) repairRuns(wrong []Finding) error {
	repairs := w.Repair && !w.gapReported
	if repairs {
		if err := w.Store.RemakeRuns(w.ctx, w.record0.ID); err != nil {
			return err
		}
	}
	for _, finding := range wrong {
		finding.Repaired = repairs
		w.emit(finding)
	}
	return nil
}

// indexedRuns reads the conversation's runs from the index.
func (w *walk) indexedRuns() (runs, error) {
	found := runs{}
	query := continuo.RunQuery{ProjectID: w.record0.ProjectID, ConversationID: w.record0.ID, Limit: pageSize}
	for {
		page, err := w.Store.Runs(w.ctx, query)
		if err != nil {
			return nil, err
		}
		for _, run := range page {
			found[run.ID] = run
			query.Before = continuo.RunCursor{StartedAt: run.StartedAt, ID: run.ID}
		}
		if len(page) < pageSize {
			return found, nil
		}
	}
}

// wrongRuns compares the index with the entries, by the ids of runs. An archived or deleted conversation has no runs in
// the index.
func (w *walk) wrongRuns(indexed runs) (wrong []Finding) {
	seen := w.runs
	if isInactive(w.record0) {
		seen = nil
	}
	all := maps.Clone(indexed)
	maps.Copy(all, seen)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		have, there := indexed[id]
		want, known := seen[id]
		finding := Finding{Seq: want.FirstSeq, Kind: BadIndex, Fix: w.reindexAdvice()}
		switch ways := differences(have, want); {
		case !there:
			finding.What = fmt.Sprintf("the run %s, which is %s, is missing from the index of runs", id, want.State)
		case !known:
			finding.What = fmt.Sprintf("the index of runs has the run %s, which no entry records", id)
			if isInactive(w.record0) {
				finding.What = fmt.Sprintf("the index of runs has the run %s of a conversation that is archived or deleted", id)
			}
		case len(ways) > 0:
			finding.What = fmt.Sprintf("the index of runs has the run %s with %s", id, strings.Join(ways, ", "))
		default:
			continue
		}
		wrong = append(wrong, finding)
	}
	return wrong
}

// isInactive reports whether a conversation's entries are in an archive, or are kept for forks only.
func isInactive(c *ConversationRecord) bool {
	return c.Deleted || !c.ArchivedAt.IsZero()
}

// differences describes how the index differs from the entries.
func differences(have, want continuo.Run) (ways []string) {
	for _, field := range []struct{ name, have, want string }{
		{"workflow_id", strconv.Quote(have.WorkflowID), strconv.Quote(want.WorkflowID)},
		{"key_id", strconv.Quote(have.KeyID), strconv.Quote(want.KeyID)},
		{"state", string(have.State), string(want.State)},
		{"first_seq", strconv.FormatInt(have.FirstSeq, 10), strconv.FormatInt(want.FirstSeq, 10)},
		{"started_at", formatTime(have.StartedAt), formatTime(want.StartedAt)},
		{"updated_at", formatTime(have.UpdatedAt), formatTime(want.UpdatedAt)},
		{"ended_at", formatTime(have.EndedAt), formatTime(want.EndedAt)},
	} {
		if field.have != field.want {
			ways = append(ways, fmt.Sprintf("%s %s instead of %s", field.name, field.have, field.want))
		}
	}
	return ways
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// settled reports whether the conversation is unchanged since it was read, with no entry after through. New entries are
// applied, and through advances to the last of them.
func (w *walk) settled(through *int64) (bool, error) {
	head, err := w.Store.Records(w.ctx, w.record0.ID, RecordPosition{}, 1)
	if err != nil || len(head) == 0 || head[0].Conversation == nil {
		return false, err
	}
	if isInactive(head[0].Conversation) != isInactive(w.record0) {
		return false, nil
	}
	settled := true
	for {
		page, err := w.Store.Records(w.ctx, w.record0.ID, RecordPosition{Kind: RecordEntry, Seq: *through}, pageSize)
		if err != nil {
			return false, err
		}
		for i := range page {
			if page[i].Entry == nil { // entries come first
				return settled, nil
			}
			w.runs.take(page[i].Entry)
			*through, settled = page[i].Entry.Seq, false
		}
		if len(page) == 0 {
			return settled, nil
		}
	}
}

// reindexAdvice is how to fix an index of runs that differs from the entries.
func (w *walk) reindexAdvice() string {
	if w.gapReported {
		return "entries are missing, and the index may be right: " + restoreAdvice
	}
	return "rebuild it: continuo store check --repair"
}
