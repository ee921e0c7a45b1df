package engine_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// answers gives one answer after another.
func answers(all ...string) func(stepRequest) (string, error) {
	next := 0
	return func(stepRequest) (string, error) {
		next++
		return all[min(next, len(all))-1], nil
	}
}

func TestAStepContinuesACutAnswer(t *testing.T) {
	const text = "id: cut\nnodes:\n  write: {brief: Write., outputs: {report: string}}\n"
	m := &scriptedModel{answer: answers("```json\n{\"report\": \"one"+cutHere, "two"+cutHere, "three\"}\n```")}
	e := newRunEngine(t, storetest.NewMemory(), m, withWorkflow(t, text))
	run := startOf(t, e, "cut")
	status := awaitRun(t, e, run)
	if status.State != continuo.RunFinished || string(status.Outputs) != `{"write":{"report":"one…two…three"}}` {
		t.Fatalf("it is %s: %s %s", status.State, status.Reason, status.Outputs)
	}
	if requests := m.requests(); len(requests) != 3 || !strings.Contains(requests[1].messages[len(requests[1].messages)-1], "Go on exactly where it ends") {
		t.Errorf("%d requests", len(requests))
	}
}

func TestARunKeepsValidOutputs(t *testing.T) {
	const text = "id: parts\nnodes:\n  write: {brief: Write., outputs: {report: string, score: number}}\n"
	m := &scriptedModel{answer: answers(`{"report": "long", "score": "high"}`, `{"score": "8.5"}`)}
	e := newRunEngine(t, storetest.NewMemory(), m, withWorkflow(t, text))
	run := startOf(t, e, "parts")
	status := awaitRun(t, e, run)
	if status.State != continuo.RunFinished || string(status.Outputs) != `{"write":{"report":"long","score":8.5}}` {
		t.Fatalf("it is %s: %s %s", status.State, status.Reason, status.Outputs)
	}
	if repairs := status.Nodes[0].Repairs; len(repairs) != 1 || repairs[0] != `score was the string "8.5"` {
		t.Errorf("repairs %q", repairs)
	}
}
