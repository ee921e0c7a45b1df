package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/workflow"
)

// workflowFolder is a folder of workflows, read again each time.
type workflowFolder struct{ dir string }

func (s workflowFolder) Workflow(id string) (*workflow.Workflow, error) {
	file := filepath.Join(s.dir, id+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %w", id, continuo.ErrNotFound)
	}
	return workflow.Parse(file, text, workflow.Known{})
}

func (s workflowFolder) Workflows() (found []*workflow.Workflow, err error) {
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.yaml"))
	for _, file := range files {
		one, problem := s.Workflow(strings.TrimSuffix(filepath.Base(file), ".yaml"))
		if problem != nil {
			err = errors.Join(err, problem)
			continue
		}
		found = append(found, one)
	}
	return found, err
}

// withRuns adds the workflows of testdata/workflows to an engine's options, and a model that carries out
// their steps.
func withRuns(options engine.Options) engine.Options {
	options.Workflows = workflowFolder{"testdata/workflows"}
	if options.Models == nil {
		options.Models, options.Default = map[string]engine.Upstream{"worker": {Model: &fakeModel{"gpt-4o", worker}}}, "worker"
	}
	return options
}

// worker carries out steps as their briefs say, line by line: "call NAME ARGUMENTS" first calls a tool, and of
// the lines "answer OUTPUTS" the one of the visit, or the last, is the answer's JSON. Elsewhere it is obedient.
func worker(ctx context.Context, shown []shownMessage, yield func(model.Delta) bool) error {
	brief, visit := "", 1
	for _, message := range shown {
		text := message.Content.String()
		if _, after, ok := strings.Cut(text, "- visit: "); ok && message.Role == "system" && strings.HasPrefix(text, "RUN_DIRECTIVE") {
			_, _ = fmt.Sscan(after, &visit)
		}
		if message.Role == "system" && strings.HasPrefix(text, "NODE_BRIEF") {
			brief = text
		}
	}
	if brief == "" {
		return obedient(ctx, shown, yield)
	}
	var answers []string
	for line := range strings.Lines(brief) {
		order, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, arguments, ok := strings.Cut(argument, " "); ok && order == "call" && shown[len(shown)-1].Role != "tool" {
			yield(model.Delta{ToolCall: &model.ToolCallDelta{ID: "call_0", Type: "function", Name: name, Arguments: arguments, Done: true}})
			return nil
		}
		if order == "answer" {
			answers = append(answers, argument)
		}
	}
	yield(model.Delta{Text: fmt.Sprintf("This was visit %d.", visit)})
	if len(answers) > 0 {
		yield(model.Delta{Text: "\n\n```json\n" + answers[min(visit, len(answers))-1] + "\n```\n"})
	}
	return nil
}

// newRunServer makes a server whose engine has workflows, a model that carries them out, and a tool.
func newRunServer(t *testing.T) (*engine.Engine, *server) {
	t.Helper()
	made := newEngine(t, withRuns(engine.Options{Tools: tool.Set{upper{}}}))
	return made, New(made, Options{}).(*server)
}

// exerciseRuns stops, resumes and approves a run.
func exerciseRuns(t *testing.T) {
	t.Helper()
	made, handler := newRunServer(t)
	run := startRun(t, handler, "release", `{"version": "1"}`, "s")
	waitForState(t, made, run, continuo.RunWaiting)
	ask(t, handler, "POST", "/api/runs/"+run.ID+"/stop", "").into(202, &struct{}{})
	ask(t, handler, "POST", "/api/runs/"+run.ID+"/resume", "").into(202, &struct{}{})
	ask(t, handler, "POST", "/api/runs/"+run.ID+"/approvals", `{"decision": "reject"}`).into(202, &struct{}{})
	waitForState(t, made, run, continuo.RunFinished)
}
