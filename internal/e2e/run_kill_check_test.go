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

// evidence says what the tests of a harness can show.
type evidence struct {
	cut      int // answers of which a part is in the log
	repeated int // calls that were made again
	outlived int // questions that waited over a kill
}

func (f *evidence) add(other evidence) {
	f.cut, f.repeated, f.outlived = f.cut+other.cut, f.repeated+other.repeated, f.outlived+other.outlived
}

// check checks everything that was left of the runs.
func (s *runHarness) check(ctx context.Context) evidence {
	s.t.Helper()
	all, wrong := s.model.requests()
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
		branches := j.readBranches(ctx, k, entries)
		lines := append([]runLog{{j.chatClient, entries, 0}}, branches...)
		for _, line := range lines {
			line.checkRules(line.entries)
			line.checkNoneRunning(ctx, k)
			j.checkTags(line)
			own := line.ownEntries()
			calls.take(own)
			for _, e := range own {
				if e.Error != nil && !e.Content.IsEmpty() {
					found.cut++
				}
			}
		}
		for _, run := range j.runs {
			runs++
			attempts += j.checkSteps(run, ofRun(entries, run))
			asked := slices.DeleteFunc(slices.Clone(all), func(a stepRequest) bool { return a.run != run.id })
			j.checkTimes(run, ofRun(entries, run), asked)
			for _, line := range lines {
				line.checkRequests(ctx, k, ofRun(line.ownEntries(), run), asked)
			}
			j.checkOutputs(ctx, k, run)
		}
		if !failed && s.t.Failed() {
			for _, line := range lines {
				line.logEntries(line.ownEntries())
			}
		}
	}
	calls.check(s.toolServer.calls())
	found.repeated = calls.again
	s.t.Logf("%d kills, %d runs in %d conversations, %d attempts, %d requests; %s; %d answers were cut; %d questions waited over a kill",
		s.kills, runs, len(s.journeys), attempts, len(all), calls, found.cut, found.outlived)
	return found
}

// logEntries logs what the conversation looks like.
func (c *chatClient) logEntries(entries []continuo.Entry) {
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
	c.t.Logf("%s has%s", c.key, &text)
}

func callNotes(e *continuo.Entry) string {
	var notes []string
	for _, call := range e.ToolCalls {
		notes = append(notes, call.Name+call.Arguments)
	}
	return strings.Join(notes, " ")
}

// checkTags checks that each entry says what it is of.
func (j *runClient) checkTags(l runLog) {
	workflows := map[string]string{}
	for _, run := range j.runs {
		workflows[run.id] = run.workflow
	}
	turns, joined := map[string]string{}, map[string]bool{}
	for _, e := range l.ownEntries() {
		workflow, known := workflows[e.RunID]
		if !known || e.WorkflowID != workflow || e.Mode != continuo.ModeRun {
			l.errorf("entry %d is of run %q, workflow %q, mode %q", e.Seq, e.RunID, e.WorkflowID, e.Mode)
		}
		place := e.RunID + "/" + e.NodeID
		if e.RunEvent != nil && e.RunEvent.Branch != "" {
			joined[place] = true
		}
		fromBranch := joined[place] && e.TurnID == "" // the event that names a branch, or what its step said
		ofTurn := e.Role == continuo.Assistant || e.Role == continuo.Tool || e.PartType == continuo.PartStep
		if !ofTurn || fromBranch {
			continue
		}
		if e.TurnID == "" || e.NodeID == "" {
			l.errorf("entry %d, %s, is of turn %q and node %q", e.Seq, e.Role, e.TurnID, e.NodeID)
		}
		if turns[e.TurnID] == "" {
			turns[e.TurnID] = place
		} else if turns[e.TurnID] != place {
			l.errorf("entry %d is of %s, its turn of %s", e.Seq, place, turns[e.TurnID])
		}
	}
}

// visitOf names a visit of a step.
func visitOf(e *continuo.Entry, visit int) string { return fmt.Sprintf("%s/%d", e.NodeID, visit) }

// checkSteps checks what a run recorded of itself: each step finished once, in order, and nothing came after. It
// returns how many attempts there were.
func (j *runClient) checkSteps(run *clientRun, entries []continuo.Entry) int {
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
			if e.RunEvent.Branch != "" != isParallel(visit) {
				j.errorf("run %s: entry %d begins %s in the branch %q", run.id, e.Seq, visit, e.RunEvent.Branch)
			}
			if e.RunEvent.Attempt != attempts[visit] || turns[e.TurnID] != "" || slices.Contains(finished, visit) {
				j.errorf("run %s: entry %d begins attempt %d of %s, the %dth, of which %v has finished; its turn had begun %q", run.id, e.Seq, e.RunEvent.Attempt, visit, attempts[visit], finished, turns[e.TurnID])
			}
			if e.TurnID != "" {
				turns[e.TurnID] = visit
			}
		case continuo.RunNodeFinished:
			finished = append(finished, visit)
		case continuo.RunNodeRefused:
			refused = append(refused, visit)
		case continuo.RunNodeAsked:
			if attempts[visit]++; attempts[visit] > 1 {
				j.errorf("run %s: entry %d asks the question of %s again", run.id, e.Seq, visit)
			}
		case continuo.RunEventWaiting, continuo.RunResumed, continuo.RunNodeDelayed:
		default:
			ended = append(ended, string(e.RunEvent.Kind))
		}
	}
	for visit := range attempts {
		if !slices.Contains(finished, visit) {
			j.errorf("run %s: %s began and did not finish", run.id, visit)
		}
	}
	want := expectedRuns[run.workflow]
	inAnyOrder(finished, want.beside)
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
func (j *runClient) checkOutputs(ctx context.Context, k *killable, run *clientRun) {
	var status struct {
		State   continuo.RunState
		Outputs json.RawMessage
	}
	if code, err := k.get(ctx, "/api/runs/"+run.id, &status); err != nil || code != http.StatusOK {
		j.errorf("run %s: status %d, %v", run.id, code, err)
		return
	}
	want, err := json.Marshal(expectedRuns[run.workflow].outputs(run.tag))
	if err != nil {
		j.errorf("%v", err)
	}
	got := strings.ReplaceAll(string(status.Outputs), thatWasAll, "")
	if status.State != continuo.RunFinished || got != string(want) {
		j.errorf("run %s of %s is %s with the outputs\n%s, want\n%s", run.id, run.workflow, status.State, got, want)
	}
}

// checkTimes checks that no visit of a step is asked for after it has finished, and that its system messages stay.
func (j *runClient) checkTimes(run *clientRun, entries []continuo.Entry, all []stepRequest) {
	first := map[string]stepRequest{}
	for _, a := range all {
		visit := fmt.Sprintf("%s/%d", a.step, a.visit)
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
}

// checkRequests compares what the upstream was asked for a run with what is in the log.
func (l runLog) checkRequests(ctx context.Context, k *killable, entries []continuo.Entry, all []stepRequest) {
	bodies := map[string]bool{}
	for _, a := range all {
		bodies[a.body] = true
	}
	for _, e := range entries {
		if e.Round == nil {
			continue
		}
		open := e.Error != nil && e.Content.IsEmpty() && !e.HasCalls() // the program may have been killed before it asked
		if !bodies[e.Round.RequestSHA256] && !open {
			l.errorf("entry %d answers a request that the upstream did not get", e.Seq)
		}
		var again struct{ Same bool }
		if code, err := k.get(ctx, l.path(fmt.Sprintf("/entries/%d/request", e.Seq)), &again); err != nil || code != http.StatusOK || !again.Same {
			l.errorf("the request of entry %d is made again with status %d, %v, same: %v", e.Seq, code, err, again.Same)
		}
	}
}
