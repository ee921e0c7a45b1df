package mcpserver

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/task"
)

// maxPrompt bounds what a deployment adds to the prompt of a task, in characters.
const maxPrompt = 100_000

func (f *projectServer) deployAgent(c *call) (answer, error) {
	request := engine.DeployRequest{Scope: f.scope, TaskID: c.required("task_id"), Type: c.text("agent_type"), Prompt: c.text("prompt"), Key: c.key()}
	wait := c.wait()
	if utf8.RuneCountInString(request.Prompt) > maxPrompt {
		c.refuse(task.InvalidValue, "prompt", "prompt must have at most %d characters", maxPrompt)
	}
	if c.err != nil {
		return answer{}, c.err
	}
	agent, err := f.engine.Tasks.Deploy(c.ctx, request)
	if err != nil {
		return answer{}, err
	}
	// From here on the agent works: the caller receives its id, even if the wait fails.
	output := &engine.AgentOutput{DeployedAgent: *agent}
	if wait > 0 {
		output = f.awaitOutput(c, output, 0, maxOutput, wait, untilEnded)
	}
	return answer{value: showOutput(output, wait > 0)}, nil
}

// shownOutput is an agent with its output.
type shownOutput struct {
	engine.DeployedAgent
	ConversationURI string  `json:"conversation_uri"`
	Output          *string `json:"output,omitempty"`
	From            *int    `json:"from,omitempty"`
	NextFrom        *int    `json:"next_from,omitempty"` // where the next read begins
	Total           *int    `json:"total,omitempty"`
}

func showOutput(output *engine.AgentOutput, whole bool) shownOutput {
	shown := shownOutput{DeployedAgent: output.DeployedAgent, ConversationURI: conversationURI(output.ConversationID)}
	if whole {
		next := output.From + utf8.RuneCountInString(output.Output)
		shown.Output, shown.From, shown.NextFrom, shown.Total = &output.Output, &output.From, &next, &output.Total
	}
	return shown
}

// maxOutput is how many characters of an agent's output a call reads at most; the default is half of it.
const maxOutput = 100_000

func (f *projectServer) agentOutput(c *call) (answer, error) {
	id := c.required("agent_id")
	from, limit, wait := int(c.whole("from", -maxCount, maxCount, 0)), int(c.whole("limit", 1, maxOutput, maxOutput/2)), c.wait()
	if c.err != nil {
		return answer{}, c.err
	}
	output, err := f.engine.Tasks.Output(c.ctx, f.scope, id, from, limit)
	if err != nil {
		return answer{}, err
	}
	if wait > 0 {
		if from < 0 { // counted from the output's end at the time of the call
			from = output.From
		}
		output = f.awaitOutput(c, output, from, limit, wait, untilMore)
		if err := c.ctx.Err(); err != nil {
			return answer{}, err // there is no client left to answer
		}
	}
	return answer{value: showOutput(output, true)}, nil
}

// maxWait is how long a tool waits at most, in seconds.
const maxWait = 300

// wait returns how long a call may wait.
func (c *call) wait() time.Duration {
	return time.Duration(c.whole("wait_seconds", 0, maxWait, 0)) * time.Second
}

// The conditions that a wait can have.
func untilEnded(output *engine.AgentOutput) bool { return isOver(output.State) }

func untilMore(output *engine.AgentOutput) bool {
	return isOver(output.State) || output.Output != ""
}

// isOver reports whether an agent has ended or pauses, so that it does nothing more by itself.
func isOver(state engine.TaskState) bool {
	return state != engine.TaskQueued && state != engine.TaskRunning
}

// awaitOutput reads an agent's output until enough returns true, the time is up, the client disconnects, or the program
// shuts down, and reports progress whenever there is more. The result is what it read last.
func (f *projectServer) awaitOutput(c *call, last *engine.AgentOutput, from, limit int, wait time.Duration, enough func(*engine.AgentOutput) bool) *engine.AgentOutput {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	look := time.NewTicker(f.options.Poll)
	defer look.Stop()
	listener := f.engine.Conversations.Listen(last.ConversationID)
	defer listener.Close()
	began, told, said := f.engine.Conversations.Now(), time.Duration(-1), -1
	for {
		changed := listener.Changed()
		output, err := f.engine.Tasks.Output(c.ctx, f.scope, last.ID, from, limit)
		if err != nil {
			return last
		}
		last = output
		if waited := f.engine.Conversations.Now().Sub(began); waited > told && (last.Total > said || waited-told >= heartbeat) {
			told, said = waited, last.Total
			c.progress(waited.Seconds(), wait.Seconds(), fmt.Sprintf("%s is %s: %d characters so far", last.ID, last.State, said))
		}
		if enough(last) {
			return last
		}
		select {
		case <-changed:
		case <-look.C:
		case <-deadline.C:
			return last
		case <-c.ctx.Done():
			return last
		case <-f.engine.Draining().Done():
			return last
		}
	}
}

// heartbeat is how often a client is notified that a call still waits, so that its own time limit does not end the call.
const heartbeat = 5 * time.Second

// progress reports how far a call is to a client that asked for it; the value grows each time.
func (c *call) progress(done, total float64, message string) {
	if token := c.request.Params.GetProgressToken(); token != nil {
		_ = c.request.Session.NotifyProgress(c.ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: total, Message: message,
		}) // a disconnected client ends the call anyway
	}
}

func (f *projectServer) reportFinding(c *call) (answer, error) {
	id := c.required("task_id")
	finding := engine.Finding{
		AgentID: c.text("agent_id"), Message: c.required("message"),
		Type:     engine.FindingType(c.choice("finding_type", "", names(engine.FindingTypes...)...)),
		Severity: engine.FindingSeverity(c.choice("severity", "", names(engine.Severities...)...)),
	}
	if c.has("data") {
		finding.Data = json.RawMessage(c.object.Get("data"))
		if finding.Data[0] != '{' {
			c.refuse(task.TypeError, "data", "data must be an object")
		}
	}
	if c.err != nil {
		return answer{}, c.err
	}
	kept, err := f.engine.Tasks.Report(c.ctx, f.scope, id, finding)
	if err != nil {
		return answer{}, err
	}
	return answer{value: struct {
		TaskID string `json:"task_id"`
		*engine.Finding
	}{id, kept}}, nil
}

func (f *projectServer) killAgent(c *call) (answer, error) {
	id, reason := c.required("agent_id"), cut(c.text("reason"), 500)
	if c.err != nil {
		return answer{}, c.err
	}
	agent, err := f.engine.Tasks.Kill(c.ctx, f.scope, id, reason)
	if err != nil {
		return answer{}, err
	}
	return answer{value: showOutput(&engine.AgentOutput{DeployedAgent: *agent}, false)}, nil
}
