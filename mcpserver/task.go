package mcpserver

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/task"
)

// shownTask is what every tool shows of a task. Its history is in its prompt.
type shownTask struct {
	ID             string `json:"task_id"`
	ConversationID string `json:"conversation_id"`   // the task's record
	UserID         string `json:"user_id,omitempty"` // the task's owner; absent for none
	// Queued: no agent works on the task. Blocked: a call of the agent waits for a person. Gone: the agent's conversation was
	// deleted. Redacted: the texts of the task were removed.
	State       engine.TaskState `json:"status"`
	Description string           `json:"description"`                     // the work to be done
	Priority    task.Priority    `json:"priority" enum:"P0,P1,P2,P3,P4,"` // empty, as the description, where the task was redacted
	CreatedAt   time.Time        `json:"created_at"`
	UpdatedAt   time.Time        `json:"updated_at"`
	PromptURI   string           `json:"prompt_uri"` // the resource with the prompt that agents get
}

func showTask(found *engine.ListedTask, descriptionChars int) shownTask {
	return shownTask{
		ID: found.ID, ConversationID: found.ConversationID, UserID: found.UserID, State: found.State,
		Description: cut(found.Task.Description, descriptionChars), Priority: found.Task.Priority,
		CreatedAt: found.CreatedAt, UpdatedAt: found.UpdatedAt, PromptURI: promptURI(found.ID),
	}
}

// shownHistory says what a task keeps of the conversation that led to it.
type shownHistory struct {
	Messages   int          `json:"total_messages"`   // messages that were kept
	Truncated  int          `json:"truncated_count"`  // how many of them were truncated
	Summarized int          `json:"summarized_count"` // how many of them were summarized
	LeftOut    int          `json:"left_out"`         // messages that were left out because of low relevance
	Source     *task.Source `json:"source,omitempty"` // the entries of the log that the history was made of
}

func showHistory(made *task.Task) *shownHistory {
	history := made.Context.ConversationHistory
	if history == nil {
		return nil
	}
	shown := &shownHistory{Messages: history.TotalMessages, Truncated: history.TruncatedCount, Summarized: history.SummarizedCount, Source: made.Source}
	for _, gap := range history.Gaps {
		shown.LeftOut += gap.LeftOut
	}
	return shown
}

// maxChars is more than the length of any text of a task.
const maxChars = 1 << 20

// createdTask is a new task.
type createdTask struct {
	shownTask
	// What the task keeps of the conversation that led to it.
	History *shownHistory `json:"conversation_history,omitempty"`
	// How the request was changed in ways that the caller may not expect.
	Warnings []task.Warning `json:"warnings"`
}

func (f *projectServer) createTask(c *call, in api.TaskRequest) (createdTask, error) {
	in.Progress = func(made, total int) {
		c.progress(float64(made), float64(total), fmt.Sprintf("%d of %d summaries are made", made, total))
	}
	made, err := f.api.CreateTask(c.ctx, f.scope, in)
	if err != nil {
		return createdTask{}, err
	}
	for _, name := range c.unknown {
		made.Warnings = append(made.Warnings, task.Warning{
			Severity: task.Low, Message: fmt.Sprintf("there is no argument %q; it was ignored", cut(name, 60)), Suggestion: "Check the names of the arguments",
		})
	}
	f.warn(c, made.Warnings)
	return createdTask{showTask(&made.ListItem, maxChars), showHistory(&made.Task), made.Warnings}, nil
}

// warn sends warnings to the client's log, for people to see.
func (f *projectServer) warn(c *call, warnings []task.Warning) {
	for _, warning := range warnings {
		//lint:ignore SA1019 clients of before 2026-07-28 show it
		_ = c.request.Session.Log(c.ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "continuo", Data: warning}) // the result has it too
	}
}

// taskStatus is the status of a task.
type taskStatus struct {
	shownTask
	// What the task keeps of the conversation that led to it.
	History *shownHistory `json:"conversation_history,omitempty"`
	// The agents that were deployed for it, the oldest first.
	Agents []engine.DeployedAgent `json:"agents"`
	// The newest 50 findings, the oldest of them first.
	Findings      []engine.Finding `json:"findings"`
	FindingsTotal int              `json:"findings_total"` // how many findings there are
}

// maxFindings is how many findings of a task are shown, the newest.
const maxFindings = 50

func (f *projectServer) taskStatus(c *call, in api.TaskPath) (taskStatus, error) {
	found, err := f.api.GetTask(c.ctx, f.scope, in)
	if err != nil {
		return taskStatus{}, err
	}
	total := len(found.Findings)
	return taskStatus{
		shownTask: showTask(&found.ListItem, maxChars), History: showHistory(&found.Task), Agents: append([]engine.DeployedAgent{}, found.Agents...),
		Findings: append([]engine.Finding{}, found.Findings[max(0, total-maxFindings):]...), FindingsTotal: total,
	}, nil
}

// taskPrompt is the prompt of a task.
type taskPrompt struct {
	ID     string `json:"task_id"`
	Prompt string `json:"prompt"`     // the prompt that an agent gets
	Chars  int    `json:"characters"` // its length in Unicode characters
}

// WriteText is the prompt alone.
func (p taskPrompt) WriteText() []byte { return []byte(p.Prompt) }

func (f *projectServer) taskPrompt(c *call, in api.TaskPath) (taskPrompt, error) {
	prompt, err := f.api.ShowTaskPrompt(c.ctx, f.scope, in)
	return taskPrompt{in.Task, string(prompt), utf8.RuneCount(prompt)}, err
}

// taskList is a page of tasks.
type taskList struct {
	Tasks []listedTask `json:"tasks"`
	// The cursor of the next page; absent on the last one.
	NextCursor string `json:"next_cursor,omitempty"`
}

// listedTask is a task in a list, with at most 300 characters of its description.
type listedTask struct {
	shownTask
	Agents int `json:"agents"` // how many agents were deployed for it
}

// descriptionChars is how many characters of a description a list shows.
const descriptionChars = 300

func (f *projectServer) listTasks(c *call, in api.TaskFilter) (taskList, error) {
	page, err := f.api.ListTasks(c.ctx, f.scope, in)
	if err != nil {
		return taskList{}, err
	}
	list := taskList{Tasks: []listedTask{}, NextCursor: cursorOf(page.NextCursor)}
	for i := range page.Data {
		list.Tasks = append(list.Tasks, listedTask{showTask(&page.Data[i], descriptionChars), len(page.Data[i].Agents)})
	}
	return list, nil
}

// cursorOf is the cursor of a list's next page; "" on the last one.
func cursorOf(next *string) string {
	if next == nil {
		return ""
	}
	return *next
}
