package workflow

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	continuo "github.com/continuo-log/continuo"
)

//go:embed *.md
var prose embed.FS

// texts are the templates of the messages that a step's requests contain. They are deterministic: the same state
// gives the same bytes.
var texts = template.Must(template.New("").Funcs(template.FuncMap{"list": quotedList, "names": namesList}).ParseFS(prose, "*.md"))

func namesList(names []string) string { return strings.Join(names, ", ") }

// textData is the input of the templates.
type textData struct {
	Step
	Workflow *Workflow
	RunID    string
	Inputs   []namedValue
	Outputs  []namedValue
}

// namedValue is a value as it is shown to a model: compact JSON with sorted keys, or a preview of it. Full is where
// the whole value can be read.
type namedValue struct{ Name, Value, full string }

// Texts makes the system messages that follow those of the mode in each request of a step: RUN_DIRECTIVE, NODE_BRIEF
// and STEP_CONTEXT. They are the same for all attempts of a visit, unless a person decides elsewhere in the run
// meanwhile.
func (s *State) Texts(step Step) ([]string, error) {
	data, err := s.textData(step)
	if err != nil {
		return nil, err
	}
	made := make([]string, 3)
	for i, name := range []string{"run-directive.md", "node-brief.md", "step-context.md"} {
		made[i] = fill(name, data)
	}
	return made, nil
}

// Cue makes the first entry of an attempt's turn.
func (s *State) Cue(step Step) continuo.Entry {
	cue := s.event(step.Node.ID, continuo.RunEvent{Kind: continuo.RunNodeBegan, Visit: step.Visit, Attempt: step.Attempt},
		fill("cue.md", textData{Step: step, Workflow: s.Workflow}))
	cue.Hidden, cue.PartType = false, continuo.PartStep
	if step.Resumes {
		cue.PartType = continuo.PartResume
	}
	return cue
}

// BeginInBranch makes the first entries of an attempt in a branch: the event for the run's conversation, and the cue of
// its turn.
func (s *State) BeginInBranch(step Step, branch string) (event, cue continuo.Entry) {
	cue = s.Cue(step)
	event = s.event(step.Node.ID, *cue.RunEvent, fmt.Sprintf("The step %s is carried out in the conversation %s, attempt %d.", step.Node.ID, branch, step.Attempt))
	event.RunEvent.Branch, cue.RunEvent = branch, nil
	return event, cue
}

// Joined makes the copies, for the run's conversation, of the cue and the answer of a step that ran in a branch.
func (s *State) Joined(step Step, answers []string) []continuo.Entry {
	_, cue := s.BeginInBranch(Step{Node: step.Node, Visit: step.Visit, Attempt: 1}, step.Branch)
	cue.RunID, cue.WorkflowID, cue.NodeID, cue.Mode = s.RunID, s.Workflow.ID, step.Node.ID, continuo.ModeRun
	answer := cue
	answer.Role, answer.PartType, answer.AgentID = continuo.Assistant, "", step.Node.Agent
	answer.Content = continuo.Text(strings.Join(answers, ""))
	return []continuo.Entry{cue, answer}
}

// Begin makes the first entry of a run: the person's message, with the workflow and the inputs from ReadInputs.
// Message may be empty.
func (w *Workflow) Begin(runID, message string, inputs json.RawMessage) (continuo.Entry, error) {
	if strings.TrimSpace(message) == "" {
		values, err := decodeObject(inputs)
		if err != nil {
			return continuo.Entry{}, err
		}
		message = fmt.Sprintf("Run the workflow %s (%s).", w.ID, w.Name)
		for _, value := range w.shown(values) {
			message += fmt.Sprintf("\n- %s: %s", value.Name, value.Value)
		}
	}
	return continuo.Entry{
		Role: continuo.User, Content: continuo.Text(message), Mode: continuo.ModeRun, RunID: runID, WorkflowID: w.ID,
		RunEvent: &continuo.RunEvent{Kind: continuo.RunBegan, Workflow: w.Hash(), Inputs: inputs},
	}, nil
}

// fill fills a template; the existing templates never fail.
func fill(name string, data textData) string {
	var text strings.Builder
	if err := texts.ExecuteTemplate(&text, name, data); err != nil {
		panic(fmt.Sprintf("the text %s: %v", name, err))
	}
	return strings.TrimSpace(text.String())
}

func (s *State) textData(step Step) (textData, error) {
	data := textData{Step: step, Workflow: s.Workflow, RunID: s.RunID}
	values := s.values("", nil, step.Visit)
	for _, binding := range step.Node.Inputs {
		value, err := binding.Value.Eval(values)
		if err != nil {
			return data, fmt.Errorf("the input %s of the step %s cannot be made: %w", binding.Name, step.Node.ID, err)
		}
		raw, err := canonicalOf(map[string]any{"": value})
		if err != nil {
			return data, fmt.Errorf("the input %s of the step %s is no JSON: %w", binding.Name, step.Node.ID, err)
		}
		data.Inputs = append(data.Inputs, namedValue{binding.Name, string(raw[len(`{"":`) : len(raw)-1]), s.sources(binding.Value)})
	}
	if len(step.Node.Inputs) > 0 {
		shorten(data.Inputs)
		return data, nil // the step gets no other values
	}
	data.Inputs = s.Workflow.shown(s.inputs)
	for i := range data.Inputs {
		data.Inputs[i].full = continuo.InputsRef(s.RunID)
	}
	for i := range s.Workflow.Nodes {
		id := s.Workflow.Nodes[i].ID
		if node := s.nodes[id]; node.outputs != nil && s.Workflow.leadsTo(id, step.Node.ID) {
			data.Outputs = append(data.Outputs, namedValue{id, string(canonical(node.outputs)), continuo.StepRef(s.RunID, id)})
		}
	}
	shorten(data.Inputs, data.Outputs)
	return data, nil
}

// leadsTo reports whether a path along edges, including edges back, leads from a node to another. Outputs of nodes
// without such a path are no part of a step's context: whether they have finished may depend on their speed.
func (w *Workflow) leadsTo(from, to string) bool {
	seen, queue := map[string]bool{}, []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for i := range w.Edges {
			edge := &w.Edges[i]
			if edge.From != at || seen[edge.To] {
				continue
			}
			if edge.To == to {
				return true
			}
			seen[edge.To] = true
			queue = append(queue, edge.To)
		}
	}
	return false
}

// shown lists inputs in the order of the file.
func (w *Workflow) shown(inputs map[string]any) []namedValue {
	var shown []namedValue
	for _, field := range w.Inputs {
		if value, there := inputs[field.Name]; there {
			raw := canonical(map[string]any{"": value})
			shown = append(shown, namedValue{Name: field.Name, Value: string(raw[len(`{"":`) : len(raw)-1])})
		}
	}
	return shown
}

// decisionText describes a person's decision to the models of later steps.
func decisionText(node *Node, approved bool, comment string) string {
	decision := "Not approved"
	if approved {
		decision = "Approved"
	}
	text := fmt.Sprintf("%s: %s", decision, node.Approval.Question)
	if comment = strings.TrimSpace(comment); comment != "" {
		text += "\n\n" + comment
	}
	return text
}
