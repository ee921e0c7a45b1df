package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/task"
)

type taskCreateCommand struct {
	File         string   `arg:"" optional:"" name:"file" help:"A file with the description, or with the whole task as a JSON object; - reads standard input. Flags add to it or replace what it has."`
	Description  string   `short:"d" placeholder:"TEXT" help:"The work to do."`
	Priority     *string  `enum:"P0,P1,P2,P3,P4" help:"How urgent it is, P0 the most: P0, P1, P2, P3 or P4. Default: P2."`
	Conversation string   `placeholder:"CONV" help:"The conversation that explains it: id, key or @1."`
	From         int64    `placeholder:"SEQ" help:"The first entry of it. Default: 1."`
	To           int64    `placeholder:"SEQ" help:"The last entry of it. Default: the newest."`
	Compression  *string  `enum:"truncate,semantic" help:"How messages that are too long are shortened: truncate keeps their beginning, semantic a summary. Default: truncate."`
	Relevance    *float64 `placeholder:"0..1" help:"Leave out messages that are less relevant to the description. Default: all are kept."`
	Background   string   `placeholder:"TEXT" help:"Further context."`
	Cwd          string   `name:"cwd" placeholder:"FOLDER" help:"The folder that the work is about, for the prompt."`
	User         string   `placeholder:"USER" help:"The user who owns the task; the source conversation must have the same user. Default: none."`
	Files        []string `name:"file" sep:"none" placeholder:"PATH" help:"A relevant file. May be repeated, as may the flags below."`
	Deliverable  []string `sep:"none" placeholder:"TEXT" help:"A deliverable."`
	Criterion    []string `sep:"none" placeholder:"TEXT" help:"A success criterion."`
	Constraint   []string `sep:"none" placeholder:"TEXT" help:"A constraint."`
	Document     []string `sep:"none" placeholder:"TEXT" help:"Documentation that belongs to it."`
	JSON         bool     `help:"Write JSON: the task, and warnings."`
}

func (taskCreateCommand) Help() string {
	return `Stores a task together with the conversation that explains it, shortened for an agent. No agent is started yet: see continuo task deploy. A JSON file has the fields of POST /api/tasks.

Examples:

    continuo task create --description "Fix the login" --conversation s1
    continuo task create -d "Fix the login" --conversation s1 --from 3 --to 20 --file login.go --criterion "a person can log in"
    continuo task create description.md --conversation @1 --compression semantic
    continuo task create task.json --priority P0 --json | jq -r .task_id`
}

// Run makes the task.
func (c *taskCreateCommand) Run(ctx context.Context, a *app) error {
	request, err := c.request(a)
	if err != nil {
		return err
	}
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	w, err := a.wireWith(ctx, settings, buildOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	if err := continuo.CheckUserID(c.User); err != nil {
		return usage("--user: %v", err)
	}
	if err := c.source(ctx, w, &request); err != nil {
		return err
	}
	status, warnings, err := w.engine.Tasks.Create(ctx, engine.TaskRequest{Scope: w.scope(), UserID: c.User, Request: request})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.json(api.CreatedTask{TaskStatus: status, Warnings: append([]task.Warning{}, warnings...)})
	}
	for _, warning := range warnings {
		a.note("%s %s. %s.", a.notePaint.Yellow("note:"), warning.Message, strings.TrimSuffix(warning.Suggestion, "."))
	}
	a.print("%s", status.ID)
	a.note("Set an agent to work with: continuo task deploy %s", status.ID)
	return nil
}

// request reads the file, and overrides it by the flags.
func (c *taskCreateCommand) request(a *app) (request task.Request, err error) {
	if c.File != "" {
		if request, err = c.read(a); err != nil {
			return request, err
		}
	}
	for _, text := range []struct {
		into  *string
		given string
	}{{&request.Description, c.Description}, {&request.BackgroundContext, c.Background}, {&request.ClientCwd, c.Cwd}} {
		if text.given != "" {
			*text.into = text.given
		}
	}
	if c.Priority != nil {
		request.Priority = task.Priority(*c.Priority)
	}
	if c.Compression != nil {
		request.Compression = task.Compression(*c.Compression)
	}
	if c.Relevance != nil {
		request.Relevance = c.Relevance
	}
	for _, list := range []struct {
		into  *[]string
		given []string
	}{
		{&request.RelevantFiles, c.Files},
		{&request.ExpectedDeliverables, c.Deliverable},
		{&request.SuccessCriteria, c.Criterion},
		{&request.Constraints, c.Constraint},
		{&request.RelatedDocumentation, c.Document},
	} {
		*list.into = append(*list.into, list.given...)
	}
	if strings.TrimSpace(request.Description) == "" {
		return request, usage("say what is to be done: give --description, or a file with it")
	}
	return request, nil
}

// read reads the file: a JSON object, or else the description.
func (c *taskCreateCommand) read(a *app) (task.Request, error) {
	text, err := a.readInputs(c.File)
	if err != nil {
		return task.Request{}, err
	}
	if trimmed := bytes.TrimSpace(text); bytes.HasPrefix(trimmed, []byte("{")) {
		request, err := task.Parse(trimmed, task.Limits{})
		if err != nil {
			return task.Request{}, usage("%s: %w", c.File, err)
		}
		return request, nil
	}
	return task.Request{Description: strings.TrimSpace(string(text))}, nil
}

// source makes the named conversation the history of the task.
func (c *taskCreateCommand) source(ctx context.Context, w *services, request *task.Request) error {
	if c.Conversation == "" {
		if c.From != 0 || c.To != 0 {
			return usage("--from and --to need --conversation")
		}
		return nil
	}
	if c.From < 0 || c.To < 0 {
		return usage("--from and --to are seqs: whole numbers from 1")
	}
	conversation, err := w.find(ctx, c.Conversation)
	if err != nil {
		return err
	}
	if c.User != "" && conversation.UserID != c.User {
		return fmt.Errorf("conversation %s is not one of --user %s: %w", nameOf(conversation), term.OneLine(c.User, 60), continuo.ErrNotFound)
	}
	request.ConversationHistory = rawjson.MustMarshal(task.Source{ConversationID: conversation.ID, From: c.From, To: c.To})
	return nil
}
