package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// runClient is a conversation in which runs are executed one after another, as their client has it. One goroutine
// uses it.
type runClient struct {
	*chatClient
	harness *runHarness
	first   int // which workflow comes first
	runs    []*clientRun
}

// clientRun is a run of a client.
type clientRun struct {
	id, workflow, tag string
	waits             int // the visit of the question that it waits with
	waitsSince        int // how many kills there were when it began to wait
	waitsAt           int // how many entries the log had then
	// unsure says that a decision on it was sent and not answered. The database may still commit what a program had sent
	// to it when it was killed, also after a client has looked again.
	unsure bool
}

// runsPerClient is how many runs one conversation has at most.
const runsPerClient = 2

// runPatience is how long a run may take to come to its end. A run that broke off is resumed after a while, and
// that happens to it again and again.
const runPatience = 20 * time.Minute

// pollInterval is how often a client reads the state of its run.
const pollInterval = 50 * time.Millisecond

func newRunClient(s *runHarness, key string, first int) *runClient {
	return &runClient{chatClient: newChatClient(s.t, nil, nil, rand.New(rand.NewPCG(uint64(first), 0)), key), harness: s, first: first}
}

// workflowNames are the workflows of run clients, in the order in which they come.
var workflowNames = []string{"voyage", "consent"}

// executeRuns executes runs.
func (j *runClient) executeRuns(ctx context.Context) {
	for n := 0; n < runsPerClient && (n == 0 || !j.harness.isEnding()); n++ {
		run := &clientRun{workflow: workflowNames[(j.first+n)%len(workflowNames)], tag: fmt.Sprintf("%s.%d", j.key, n)}
		j.runs = append(j.runs, run)
		if !j.execute(ctx, run) {
			return
		}
	}
}

// execute begins a run and waits for its end. Nothing is done for it but what a person decides.
func (j *runClient) execute(ctx context.Context, run *clientRun) bool {
	until := time.Now().Add(runPatience)
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for state := continuo.RunState(""); ; {
		k := j.harness.any()
		var err error
		if run.id == "" {
			err = j.start(ctx, k, run)
		} else {
			state, err = j.state(ctx, k, run)
		}
		switch {
		case state == continuo.RunFinished:
			return true
		case j.t.Failed():
			return false
		case time.Now().After(until) || ctx.Err() != nil:
			j.errorf("run %s of %s does not end: it is %q, %v", run.id, run.workflow, state, err)
			return false
		case err == nil && state != "" && state != continuo.RunRunning && state != continuo.RunWaiting:
			j.errorf("run %s of %s is %s", run.id, run.workflow, state)
			return false
		case err == nil && state == continuo.RunWaiting:
			j.decide(ctx, k, run)
		case err == nil && state == continuo.RunRunning && j.harness.contended && j.random.IntN(resumeOdds) == 0:
			j.resumeAtAnother(ctx, run)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}

// start begins a run. Its key makes that happen once, however often it is tried.
func (j *runClient) start(ctx context.Context, k *killable, run *clientRun) error {
	body := map[string]any{"workflow_id": run.workflow, "session_id": j.key, "inputs": map[string]string{"tag": run.tag}, "stream": false}
	var begun struct{ ID string }
	if err := j.post(ctx, k, "/api/runs", body, &begun, "Idempotency-Key", run.tag); err != nil {
		return err
	}
	run.id = begun.ID
	return nil
}

// resumeOdds is of how many looks at a run of a contended harness one makes another program resume it too.
const resumeOdds = 8

// resumeAtAnother has some program resume a run that others may be executing.
func (j *runClient) resumeAtAnother(ctx context.Context, run *clientRun) {
	response, err := j.harness.any().do(ctx, http.MethodPost, "/api/runs/"+run.id+"/resume", nil)
	if err != nil {
		return // killed meanwhile
	}
	_ = response.Body.Close()
	if code := response.StatusCode; code != http.StatusAccepted && code != http.StatusConflict { // by now it may wait, or have ended
		j.errorf("to resume run %s is answered with %d", run.id, code)
	}
}

// post sends a request and reads its answer. A program that was killed is an error; a refusal fails the test.
func (j *runClient) post(ctx context.Context, k *killable, path string, body, into any, header ...string) error {
	response, err := k.do(ctx, http.MethodPost, path, body, header...)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var raw json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&raw); err != nil {
		return err
	}
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("status %d: %s", response.StatusCode, raw)
	case response.StatusCode >= http.StatusBadRequest:
		j.errorf("POST %s: %d %s", path, response.StatusCode, raw)
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return json.Unmarshal(raw, into)
}

// state returns a run's state as the list of runs has it: to look at the list touches nothing.
func (j *runClient) state(ctx context.Context, k *killable, run *clientRun) (continuo.RunState, error) {
	var page struct{ Data []continuo.Run }
	status, err := k.get(ctx, "/api/runs?conversation_id="+j.key, &page)
	if err != nil {
		return "", err
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("status %d", status)
	}
	if len(page.Data) != len(j.runs) {
		j.errorf("the conversation has %d runs, want %d: %+v", len(page.Data), len(j.runs), page.Data)
	}
	for _, one := range page.Data {
		if one.ID == run.id {
			return one.State, nil
		}
	}
	j.errorf("run %s is not in the list: %+v", run.id, page.Data)
	return "", nil
}

// decide decides what a run waits for; the first time not before a program was killed while it waited.
func (j *runClient) decide(ctx context.Context, k *killable, run *clientRun) {
	kills := j.harness.killed()
	entries, err := j.readLog(ctx, k)
	if err != nil {
		return
	}
	visit := 0
	for _, e := range entries {
		if e.RunID == run.id && e.RunEvent != nil && e.RunEvent.Kind == continuo.RunNodeAsked {
			visit = e.RunEvent.Visit
		}
	}
	if visit < 1 || visit > len(decisions) {
		j.errorf("run %s waits at visit %d", run.id, visit)
		return
	}
	if run.waits != visit {
		run.waits, run.waitsSince, run.waitsAt, run.unsure = visit, kills, len(entries), false
		j.harness.killPoints.disarm() // no other kill point may come
	}
	if len(entries) != run.waitsAt {
		if !run.unsure {
			j.errorf("run %s waits, and the log grew from %d to %d entries", run.id, run.waitsAt, len(entries))
		}
		return
	}
	if visit == 1 && kills == run.waitsSince && !j.harness.isEnding() {
		return
	}
	response, err := k.do(ctx, http.MethodPost, "/api/runs/"+run.id+"/approvals", decisions[visit-1])
	if err != nil {
		run.unsure = true
		return
	}
	_ = response.Body.Close()
	switch code := response.StatusCode; {
	case code < http.StatusBadRequest:
		j.harness.addDecision(kills > run.waitsSince)
	case code >= http.StatusInternalServerError:
		run.unsure = true
	case !run.unsure || code != http.StatusNotFound && code != http.StatusConflict: // else nothing waits any more
		j.errorf("the decision on run %s is answered with %d", run.id, code)
	}
}
