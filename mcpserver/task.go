package mcpserver

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/task"
)

// shownTask is what every tool shows of a task. Its history is in its prompt.
type shownTask struct {
	ID             string           `json:"task_id"`
	ConversationID string           `json:"conversation_id"`
	UserID         string           `json:"user_id,omitempty"`
	State          engine.TaskState `json:"status"`
	Description    string           `json:"description"`
	Priority       task.Priority    `json:"priority"`
	CreatedAt      time.Time        `json:"created_at"`
	UpdatedAt      time.Time        `json:"updated_at"`
	PromptURI      string           `json:"prompt_uri"`
}

func showTask(status *engine.TaskStatus, descriptionChars int) shownTask {
	return shownTask{
		ID: status.ID, ConversationID: status.ConversationID, UserID: status.UserID, State: status.State,
		Description: cut(status.Task.Description, descriptionChars), Priority: status.Task.Priority,
		CreatedAt: status.CreatedAt, UpdatedAt: status.UpdatedAt, PromptURI: promptURI(status.ID),
	}
}

// shownHistory says what a task keeps of the conversation that led to it.
type shownHistory struct {
	Messages   int          `json:"total_messages"`
	Truncated  int          `json:"truncated_count"`
	Summarized int          `json:"summarized_count"`
	LeftOut    int          `json:"left_out"` // because of low relevance
	Source     *task.Source `json:"source,omitempty"`
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

func (f *projectServer) createTask(c *call) (answer, error) {
	request, err := task.Parse(c.raw, task.Limits{})
	if err != nil {
		return answer{}, err
	}
	key, user := c.key(), c.user(f.scope)
	if c.err != nil {
		return answer{}, c.err
	}
	progress := func(made, total int) {
		c.progress(float64(made), float64(total), fmt.Sprintf("%d of %d summaries are made", made, total))
	}
	status, warnings, err := f.engine.Tasks.Create(c.ctx, engine.TaskRequest{Scope: f.scope, UserID: user, Request: request, Key: key, Progress: progress})
	if err != nil {
		return answer{}, err
	}
	for _, name := range c.unknown(c.known) {
		warnings = append(warnings, task.Warning{
			Severity: task.Low, Message: fmt.Sprintf("there is no argument %q; it was passed over", cut(name, 60)), Suggestion: "Check the names of the arguments",
		})
	}
	f.warn(c, warnings)
	return answer{value: struct {
		shownTask
		History  *shownHistory  `json:"conversation_history,omitempty"`
		Warnings []task.Warning `json:"warnings"`
	}{showTask(status, maxChars), showHistory(&status.Task), append([]task.Warning{}, warnings...)}}, nil
}

// warn sends warnings to the client's log, for people to see.
func (f *projectServer) warn(c *call, warnings []task.Warning) {
	for _, warning := range warnings {
		//lint:ignore SA1019 clients of before 2026-07-28 show it
		_ = c.request.Session.Log(c.ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "continuo", Data: warning}) // the result has it too
	}
}

// maxFindings is how many findings of a task are shown, the newest.
const maxFindings = 50

func (f *projectServer) taskStatus(c *call) (answer, error) {
	status, err := f.findTask(c)
	if err != nil {
		return answer{}, err
	}
	total := len(status.Findings)
	findings := append([]engine.Finding{}, status.Findings[max(0, total-maxFindings):]...)
	return answer{value: struct {
		shownTask
		History       *shownHistory          `json:"conversation_history,omitempty"`
		Agents        []engine.DeployedAgent `json:"agents"`
		Findings      []engine.Finding       `json:"findings"`
		FindingsTotal int                    `json:"findings_total"`
	}{showTask(status, maxChars), showHistory(&status.Task), append([]engine.DeployedAgent{}, status.Agents...), findings, total}}, nil
}

// findTask finds the task that a call names.
func (f *projectServer) findTask(c *call) (*engine.TaskStatus, error) {
	id := c.required("task_id")
	if c.err != nil {
		return nil, c.err
	}
	return f.engine.Tasks.Get(c.ctx, f.scope, id)
}

func (f *projectServer) taskPrompt(c *call) (answer, error) {
	status, err := f.findTask(c)
	if err != nil {
		return answer{}, err
	}
	prompt, err := status.Prompt()
	if err != nil {
		return answer{}, err
	}
	return answer{text: prompt, value: struct {
		ID     string `json:"task_id"`
		Prompt string `json:"prompt"`
		Chars  int    `json:"characters"`
	}{status.ID, prompt, utf8.RuneCountInString(prompt)}}, nil
}

// listedTask is a task in a list.
type listedTask struct {
	shownTask
	Agents int `json:"agents"`
}

// The limits of a list of tasks: how many it shows, and how many characters of each description.
const (
	maxTasks         = 100
	descriptionChars = 300
)

func (f *projectServer) listTasks(c *call) (answer, error) {
	state := engine.TaskState(c.choice("status", "", names(engine.TaskStates...)...))
	query := engine.TaskQuery{State: state, Limit: int(c.whole("limit", 1, maxTasks, 20)), Scope: continuo.Scope{ProjectID: f.scope.ProjectID, UserID: c.user(f.scope)}}
	if c.has("cursor") {
		var place place
		if err := api.ReadCursor(c.text("cursor"), &place); err != nil {
			c.refuse(task.InvalidValue, "cursor", "the cursor is none that this list gave out")
		}
		query.Before = continuo.ConversationCursor{UpdatedAt: place.UpdatedAt, ID: place.ID}
	}
	if c.err != nil {
		return answer{}, c.err
	}
	page, next, err := f.engine.Tasks.List(c.ctx, query)
	if err != nil {
		return answer{}, err
	}
	found := []listedTask{}
	for i := range page {
		found = append(found, listedTask{showTask(&page[i], descriptionChars), len(page[i].Agents)})
	}
	return listOf(found, next), nil
}

// listOf is a page of tasks; last is the position of the last one that was read, nil on the last page.
func listOf(found []listedTask, last *continuo.ConversationCursor) answer {
	page := struct {
		Tasks      []listedTask `json:"tasks"`
		NextCursor string       `json:"next_cursor,omitempty"`
	}{Tasks: found}
	if last != nil {
		page.NextCursor = *api.WriteCursor(place{UpdatedAt: last.UpdatedAt, ID: last.ID})
	}
	return answer{value: page}
}

// place is the position where a page of a list ends.
type place struct {
	Kind      continuo.Kind `json:"kind,omitempty"`
	UpdatedAt time.Time     `json:"updated_at"`
	ID        string        `json:"id"`
}
