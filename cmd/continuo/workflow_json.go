package main

import (
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/workflow"
)

// The forms below are those of the API's workflows.

type shownSummary struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Inputs      []shownField `json:"inputs"`
	Nodes       int          `json:"nodes"` // how many
}

func shownSummaries(found []*workflow.Workflow) []shownSummary {
	shown := []shownSummary{}
	for _, w := range found {
		shown = append(shown, shownSummary{w.ID, w.Name, w.Description, shownFields(w.Inputs), len(w.Nodes)})
	}
	return shown
}

type shownWorkflow struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Inputs      []shownField   `json:"inputs"`
	Nodes       []shownNode    `json:"nodes"`
	Edges       []shownEdge    `json:"edges"`
	Outputs     []shownBinding `json:"outputs,omitempty"`
	SHA256      string         `json:"sha256"`
	Text        string         `json:"text"`
}

type shownField struct {
	Name        string        `json:"name"`
	Type        workflow.Type `json:"type"`
	Description string        `json:"description,omitempty"`
	Enum        []string      `json:"enum,omitempty"`
	Default     any           `json:"default,omitempty"` // nil for none; a default of false or 0 is shown
	Optional    bool          `json:"optional,omitempty"`
}

type shownBinding struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type shownNode struct {
	ID              string         `json:"id"`
	Name            string         `json:"name"`
	Brief           string         `json:"brief,omitempty"`
	Agent           string         `json:"agent,omitempty"`
	Model           string         `json:"model,omitempty"`
	View            string         `json:"view,omitempty"`
	Tools           *shownPolicy   `json:"tools,omitempty"`
	Inputs          []shownBinding `json:"inputs,omitempty"`
	Outputs         []shownField   `json:"outputs,omitempty"`
	SuccessCriteria []string       `json:"success_criteria,omitempty"`
	Check           string         `json:"check,omitempty"`
	MaxAttempts     int            `json:"max_attempts,omitempty"`
	Approval        *shownApproval `json:"approval,omitempty"`
}

type shownApproval struct {
	Question string `json:"question"`
}

type shownPolicy struct {
	Allow     []string      `json:"allow,omitempty"`
	Ask       []string      `json:"ask,omitempty"`
	Deny      []string      `json:"deny,omitempty"`
	Otherwise tool.Decision `json:"otherwise"`
}

type shownEdge struct {
	From      string   `json:"from"`
	To        string   `json:"to"`
	When      string   `json:"when,omitempty"`
	Otherwise bool     `json:"otherwise,omitempty"`
	Max       int      `json:"max,omitempty"`
	AtLimit   string   `json:"at_limit,omitempty"`
	Body      []string `json:"body,omitempty"`
}

func showWorkflow(w *workflow.Workflow) shownWorkflow {
	shown := shownWorkflow{
		ID: w.ID, Name: w.Name, Description: w.Description, Inputs: shownFields(w.Inputs),
		Nodes: []shownNode{}, Edges: []shownEdge{}, Outputs: shownBindings(w.Outputs), SHA256: w.Hash(), Text: string(w.Text),
	}
	for _, n := range w.Nodes {
		node := shownNode{
			ID: n.ID, Name: n.Name, Brief: n.Brief, Agent: n.Agent, Model: n.Model, View: n.View, Inputs: shownBindings(n.Inputs),
			Outputs: shownFields(n.Outputs), SuccessCriteria: n.SuccessCriteria, Check: expressionText(n.Check), MaxAttempts: n.MaxAttempts,
		}
		if n.Approval != nil {
			node.Approval = &shownApproval{n.Approval.Question}
		} else {
			node.Tools = &shownPolicy{n.Tools.Allow, n.Tools.Ask, n.Tools.Deny, n.Tools.Otherwise}
		}
		shown.Nodes = append(shown.Nodes, node)
	}
	for _, e := range w.Edges {
		edge := shownEdge{From: e.From, To: e.To, When: expressionText(e.When), Otherwise: e.Otherwise, Max: e.Max, Body: e.Body}
		if e.Max > 0 {
			edge.AtLimit = map[bool]string{true: "go_on", false: "fail"}[e.GoOn]
		}
		shown.Edges = append(shown.Edges, edge)
	}
	return shown
}

func shownFields(fields []workflow.Field) []shownField {
	shown := []shownField{}
	for _, f := range fields {
		shown = append(shown, shownField(f))
	}
	return shown
}

func shownBindings(bindings []workflow.Binding) []shownBinding {
	var shown []shownBinding
	for _, b := range bindings {
		shown = append(shown, shownBinding{b.Name, expressionText(b.Value)})
	}
	return shown
}

func expressionText(e *workflow.Expression) string {
	if e == nil {
		return ""
	}
	return e.Text
}

// jsonWords is a value as JSON on one line.
func jsonWords(value any) string {
	data, err := rawjson.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
