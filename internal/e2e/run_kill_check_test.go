package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// evidence says what the tests of a stage can show.
type evidence struct {
	cut      int // answers of which a part stands in the log
	repeated int // calls that were made again
	outlived int // questions that waited over a kill
}

func (f *evidence) add(other evidence) {
	f.cut, f.repeated, f.outlived = f.cut+other.cut, f.repeated+other.repeated, f.outlived+other.outlived
}

// check checks everything that was left of the runs.
func (s *stage) check(ctx context.Context) evidence {
	s.t.Helper()
	all, wrong := s.actor.told()
	for _, one := range wrong {
		s.t.Error(one)
	}
	calls := &callsOfRuns{t: s.t, calls: map[string][]recordedCall{}}
	k := s.any()
	found, runs, attempts := evidence{outlived: s.outlived}, 0, 0
	for _, j := range s.journeys {
		entries, err := j.readLog(ctx, k)
		if err != nil {
			j.errorf("%v", err)
			continue
		}
		failed := s.t.Failed()
		j.checkRules(entries)
		j.checkAllClosed(ctx, k)
		j.checkTags(entries)
		calls.take(entries)
		for _, e := range entries {
			if e.Error != nil && !e.Content.IsEmpty() {
				found.cut++
			}
		}
		for _, run := range j.runs {
			runs++
			own := slices.DeleteFunc(slices.Clone(entries), func(e continuo.Entry) bool { return e.RunID != run.id })
			attempts += j.checkSteps(run, own)
			j.checkRequests(ctx, k, run, own, slices.DeleteFunc(slices.Clone(all), func(a stepRequest) bool { return a.run != run.id }))
			j.checkOutputs(ctx, k, run)
		}
		if !failed && s.t.Failed() {
			j.tell(entries)
		}
	}
	calls.check(s.desk.told())
	found.repeated = calls.again
	s.t.Logf("%d kills, %d runs in %d conversations, %d attempts, %d requests; %s; %d answers were cut; %d questions waited over a kill",
		s.kills, runs, len(s.journeys), attempts, len(all), calls, found.cut, found.outlived)
	return found
}

// tell logs what the conversation looks like.
func (j *journey) tell(entries []continuo.Entry) {
	var text strings.Builder
	for _, e := range entries {
		event := ""
		if e.RunEvent != nil {
			event = fmt.Sprintf("%s/%d/%d", e.RunEvent.Kind, e.RunEvent.Visit, e.RunEvent.Attempt)
		}
		failure := ""
		if e.Error != nil {
			failure = string(e.Error.Reason)
		}
		fmt.Fprintf(&text, "\n%d %s %s %s %s %s %s %s %s %.90q", e.Seq, e.CreatedAt.Format("05.000"), e.NodeID, e.TurnID[max(0, len(e.TurnID)-6):], e.Role, e.PartType, event, failure, callNotes(&e), e.Content.String())
	}
	j.t.Logf("%s has%s", j.key, &text)
}

func callNotes(e *continuo.Entry) string {
	var notes []string
	for _, call := range e.ToolCalls {
		notes = append(notes, call.Name+call.Arguments)
	}
	return strings.Join(notes, " ")
}

// checkTags checks that each entry says what it is of.
func (j *journey) checkTags(entries []continuo.Entry) {
	workflows := map[string]string{}
	for _, run := range j.runs {
		workflows[run.id] = run.workflow
	}
	turns := map[string]string{}
	for _, e := range entries {
		workflow, known := workflows[e.RunID]
		if !known || e.WorkflowID != workflow || e.Mode != continuo.ModeRun {
			j.errorf("entry %d is of run %q, workflow %q, mode %q", e.Seq, e.RunID, e.WorkflowID, e.Mode)
		}
		ofTurn := e.Role == continuo.Assistant || e.Role == continuo.Tool || isCue(&e)
		if ofTurn && (e.TurnID == "" || e.NodeID == "") {
			j.errorf("entry %d, %s, is of turn %q and node %q", e.Seq, e.Role, e.TurnID, e.NodeID)
		}
		if !ofTurn {
			continue
		}
		if place := e.RunID + "/" + e.NodeID; turns[e.TurnID] == "" {
			turns[e.TurnID] = place
		} else if turns[e.TurnID] != place {
			j.errorf("entry %d is of %s, its turn of %s", e.Seq, place, turns[e.TurnID])
		}
	}
}

// isCue reports whether a turn of a step begins with an entry.
func isCue(e *continuo.Entry) bool {
	return e.RunEvent != nil && e.RunEvent.Kind == continuo.RunNodeBegan
}

// visitOf names a visit of a step.
func visitOf(e *continuo.Entry, visit int) string { return fmt.Sprintf("%s/%d", e.NodeID, visit) }

// checkSteps checks what a run recorded of itself: each step finished once, in order, and nothing came after. It
// returns how many attempts there were.
func (j *journey) checkSteps(run *journeyRun, entries []continuo.Entry) int {
	var finished, refused, ended []string
	attempts, turns := map[string]int{}, map[string]string{}
	total := 0
	for i := range entries {
		e := &entries[i]
		if visit, known := turns[e.TurnID]; known && e.RunEvent == nil && slices.Contains(finished, visit) {
			j.errorf("run %s: entry %d, %s, is of %s, which had finished", run.id, e.Seq, e.Role, visit)
		}
		if e.RunEvent == nil {
			continue
		}
		visit := visitOf(e, e.RunEvent.Visit)
		switch e.RunEvent.Kind {
		case continuo.RunNodeBegan:
			attempts[visit]++
			total++
			if e.RunEvent.Attempt != attempts[visit] || turns[e.TurnID] != "" || slices.Contains(finished, visit) {
				j.errorf("run %s: entry %d begins attempt %d of %s, the %dth, of which %v has finished; its turn had begun %q", run.id, e.Seq, e.RunEvent.Attempt, visit, attempts[visit], finished, turns[e.TurnID])
			}
			turns[e.TurnID] = visit
		case continuo.RunNodeFinished:
			finished = append(finished, visit)
		case continuo.RunNodeRefused:
			refused = append(refused, visit)
		case continuo.RunNodeAsked:
			if attempts[visit]++; attempts[visit] > 1 {
				j.errorf("run %s: entry %d asks the question of %s again", run.id, e.Seq, visit)
			}
		case continuo.RunHeld, continuo.RunResumed:
		default:
			ended = append(ended, string(e.RunEvent.Kind))
		}
	}
	for visit := range attempts {
		if !slices.Contains(finished, visit) {
			j.errorf("run %s: %s began and did not finish", run.id, visit)
		}
	}
	want := wantedRuns[run.workflow]
	if !slices.Equal(finished, want.finished) {
		j.errorf("run %s of %s finished the steps\n%v, want\n%v", run.id, run.workflow, finished, want.finished)
	}
	if !slices.Equal(refused, want.refused) {
		j.errorf("run %s of %s had the answers %v refused, want %v", run.id, run.workflow, refused, want.refused)
	}
	if !slices.Equal(ended, []string{"run_began", "run_finished"}) || entries[0].RunEvent == nil || entries[len(entries)-1].RunEvent == nil {
		j.errorf("run %s of %s has %d entries with the events %v", run.id, run.workflow, len(entries), ended)
	}
	return total
}

// checkOutputs checks that a run gave what it gives undisturbed.
func (j *journey) checkOutputs(ctx context.Context, k *killable, run *journeyRun) {
	var status struct {
		State   continuo.RunState
		Outputs json.RawMessage
	}
	if code, err := k.get(ctx, "/api/runs/"+run.id, &status); err != nil || code != http.StatusOK {
		j.errorf("run %s: status %d, %v", run.id, code, err)
		return
	}
	want, err := json.Marshal(wantedRuns[run.workflow].outputs(run.tag))
	if err != nil {
		j.errorf("%v", err)
	}
	got := strings.ReplaceAll(string(status.Outputs), thatWasAll, "")
	if status.State != continuo.RunFinished || got != string(want) {
		j.errorf("run %s of %s is %s with the outputs\n%s, want\n%s", run.id, run.workflow, status.State, got, want)
	}
}

// checkRequests compares what the upstream was asked for a run with what stands in the log.
func (j *journey) checkRequests(ctx context.Context, k *killable, run *journeyRun, entries []continuo.Entry, all []stepRequest) {
	first, bodies := map[string]stepRequest{}, map[string]bool{}
	for _, a := range all {
		visit := fmt.Sprintf("%s/%d", a.step, a.visit)
		bodies[a.body] = true
		if same, known := first[visit]; !known {
			first[visit] = a
		} else if same.system != a.system || same.tools != a.tools {
			j.errorf("run %s: in %s the system messages or tools changed:\n%s %q\n%s %q", run.id, visit, same.tools, same.systemMessages, a.tools, a.systemMessages)
		}
		for _, e := range entries {
			if e.RunEvent != nil && e.RunEvent.Kind == continuo.RunNodeFinished && visitOf(&e, e.RunEvent.Visit) == visit && a.at.After(e.CreatedAt) {
				j.errorf("run %s: %s was asked for at %s, and had finished at %s", run.id, visit, a.at, e.CreatedAt)
			}
		}
	}
	for _, e := range entries {
		if e.Round == nil {
			continue
		}
		unheard := e.Error != nil && e.Content.IsEmpty() && !e.HasCalls() // the program may have been killed before it asked
		if !bodies[e.Round.RequestSHA256] && !unheard {
			j.errorf("run %s: entry %d came of a request that the upstream did not get", run.id, e.Seq)
		}
		var again struct{ Same bool }
		if code, err := k.get(ctx, j.path(fmt.Sprintf("/entries/%d/request", e.Seq)), &again); err != nil || code != http.StatusOK || !again.Same {
			j.errorf("run %s: the request of entry %d is made again with status %d, %v, same: %v", run.id, e.Seq, code, err, again.Same)
		}
	}
}
