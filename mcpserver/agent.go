package mcpserver

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// deployment is a request to start an agent on a task.
type deployment struct {
	api.DeployRequest
	// The number of seconds to wait for the end of the work. Default: the call returns at once, and get_agent_output follows
	// the agent.
	WaitSeconds int `json:"wait_seconds,omitempty" minimum:"0" maximum:"300" default:"0"`
}

// shownAgent is an agent that works on a task.
type shownAgent struct {
	engine.DeployedAgent
	ConversationURI string `json:"conversation_uri"` // the resource with the agent's work
}

// shownOutput is a part of an agent's output.
type shownOutput struct {
	Output   string `json:"output"`    // the output from the character From on
	From     int    `json:"from"`      // the first character of the output, counted from 0
	NextFrom int    `json:"next_from"` // where the next read begins
	Total    int    `json:"total"`     // the length of the whole output in characters
}

// deployedAgent is an agent with its output, if the call waited for it.
type deployedAgent struct {
	shownAgent
	*shownOutput `json:",omitempty"`
}

// agentWithOutput is an agent with a part of its output.
type agentWithOutput struct {
	shownAgent
	shownOutput
}

func showAgent(agent *engine.DeployedAgent) shownAgent {
	return shownAgent{*agent, conversationURI(agent.ConversationID)}
}

func showOutput(output *engine.AgentOutput) shownOutput {
	return shownOutput{output.Output, output.From, output.From + utf8.RuneCountInString(output.Output), output.Total}
}

func (f *projectServer) deployAgent(c *call, in deployment) (deployedAgent, error) {
	agent, err := f.api.DeployAgent(c.ctx, f.scope, in.DeployRequest)
	if err != nil {
		return deployedAgent{}, err
	}
	if in.WaitSeconds == 0 {
		return deployedAgent{shownAgent: showAgent(agent)}, nil
	}
	// The agent works from here on: the caller receives its id, even if the wait fails.
	output := f.awaitOutput(c, &engine.AgentOutput{DeployedAgent: *agent}, outputRequest{Limit: maxOutput, WaitSeconds: in.WaitSeconds}, untilEnded)
	shown := showOutput(output)
	return deployedAgent{showAgent(&output.DeployedAgent), &shown}, nil
}

// agentArgument names an agent that works on a task.
type agentArgument struct {
	// The id of an agent, as deploy_headless_agent returns it.
	AgentID string `json:"agent_id" pattern:"^agent_"`
}

// outputRequest selects a part of an agent's output.
type outputRequest struct {
	agentArgument
	// The first character, counted from 0; a negative number counts from the end. The `next_from` of a call continues after
	// its output.
	From int `json:"from,omitempty" minimum:"-2147483647" default:"0"`
	// The maximum number of characters.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"100000" default:"50000"`
	// The number of seconds to wait for more output than there is at `from`, or for the end of the work. Default: no wait.
	WaitSeconds int `json:"wait_seconds,omitempty" minimum:"0" maximum:"300" default:"0"`
}

// maxOutput is how many characters of an agent's output a call reads at most.
const maxOutput = 100_000

func (f *projectServer) agentOutput(c *call, in outputRequest) (agentWithOutput, error) {
	output, err := f.engine.Tasks.Output(c.ctx, f.scope, in.AgentID, in.From, in.Limit)
	if err != nil {
		return agentWithOutput{}, err
	}
	if in.WaitSeconds > 0 {
		if in.From < 0 { // counted from the output's end at the time of the call
			in.From = output.From
		}
		output = f.awaitOutput(c, output, in, untilMore)
		if err := c.ctx.Err(); err != nil {
			return agentWithOutput{}, err // there is no client left to answer
		}
	}
	return agentWithOutput{showAgent(&output.DeployedAgent), showOutput(output)}, nil
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
func (f *projectServer) awaitOutput(c *call, last *engine.AgentOutput, in outputRequest, enough func(*engine.AgentOutput) bool) *engine.AgentOutput {
	wait := time.Duration(in.WaitSeconds) * time.Second
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	look := time.NewTicker(f.options.Poll)
	defer look.Stop()
	listener := f.engine.Conversations.Listen(last.ConversationID)
	defer listener.Close()
	began, reported, reportedTotal := f.engine.Conversations.Now(), time.Duration(-1), -1
	for {
		changed := listener.Changed()
		output, err := f.engine.Tasks.Output(c.ctx, f.scope, last.ID, in.From, in.Limit)
		if err != nil {
			return last
		}
		last = output
		if waited := f.engine.Conversations.Now().Sub(began); waited > reported && (last.Total > reportedTotal || waited-reported >= heartbeat) {
			reported, reportedTotal = waited, last.Total
			c.progress(waited.Seconds(), wait.Seconds(), fmt.Sprintf("%s is %s: %d characters so far", last.ID, last.State, reportedTotal))
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

// reportedFinding is a finding of a task.
type reportedFinding struct {
	TaskID string `json:"task_id"`
	*engine.Finding
}

func (f *projectServer) reportFinding(c *call, in api.FindingRequest) (reportedFinding, error) {
	finding, err := f.api.ReportFinding(c.ctx, f.scope, in)
	return reportedFinding{in.Task, finding}, err
}

// killRequest is a request to end an agent's work.
type killRequest struct {
	agentArgument
	api.StopRequest
}

func (f *projectServer) killAgent(c *call, in killRequest) (shownAgent, error) {
	agent, err := f.engine.Tasks.Kill(c.ctx, f.scope, in.AgentID, in.Reason)
	if err != nil {
		return shownAgent{}, err
	}
	return showAgent(agent), nil
}
