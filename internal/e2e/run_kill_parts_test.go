package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// stepReply is what the model does in a step.
type stepReply struct {
	calls     [][]string // the tools that it calls, by round
	continues bool       // of an answer that broke off it says the rest, instead of the whole
	// outputs are what the answer ends with; nil for a step whose output is the whole answer.
	outputs func(s *stepPrompt) map[string]any
}

var stepReplies = map[string]stepReply{
	"chart": {continues: true, outputs: func(s *stepPrompt) map[string]any {
		return map[string]any{"title": "voyage " + s.tag, "ports": []string{"a", "b"}}
	}},
	"stores": {
		calls:   [][]string{{"desk_peek", "desk_enter"}, {"desk_peek"}},
		outputs: func(*stepPrompt) map[string]any { return map[string]any{"count": 3} },
	},
	"crew": {
		calls: [][]string{{"desk_enter"}, {"desk_enter"}}, continues: true,
		outputs: func(s *stepPrompt) map[string]any { return map[string]any{"names": []string{s.tag}} },
	},
	"weather": {continues: true},
	"plan": {continues: true, outputs: func(s *stepPrompt) map[string]any {
		return map[string]any{"plan": fmt.Sprintf("visit %d, %s, %s", s.visit, s.earlier("stores"), s.earlier("crew"))}
	}},
	"rehearse": {
		calls:   [][]string{{"desk_peek"}},
		outputs: func(s *stepPrompt) map[string]any { return map[string]any{"notes": fmt.Sprintf("notes %d", s.visit)} },
	},
	"judge": {continues: true, outputs: func(s *stepPrompt) map[string]any {
		return map[string]any{"verdict": map[bool]string{true: "redo", false: "go"}[s.visit == 1]}
	}},
	"sail": {outputs: func(s *stepPrompt) map[string]any {
		return map[string]any{"knots": map[bool]int{true: 7, false: 1}[s.wasRefused()]} // the first answer is refused
	}},
	"arrive": {
		calls: [][]string{{"desk_enter", "desk_peek"}}, continues: true,
		outputs: func(s *stepPrompt) map[string]any {
			return map[string]any{"line": s.earlier("sail") + s.earlier("judge") + s.earlier("storm")}
		},
	},
	"begin": {continues: true, outputs: func(s *stepPrompt) map[string]any { return map[string]any{"about": s.tag} }},
	"prepare": {
		calls:   [][]string{{"desk_peek"}},
		outputs: func(s *stepPrompt) map[string]any { return map[string]any{"notice": fmt.Sprintf("notice %d", s.visit)} },
	},
	"aside": {calls: [][]string{{"desk_peek", "desk_enter"}}, continues: true},
	"publish": {
		calls:   [][]string{{"desk_enter"}},
		outputs: func(s *stepPrompt) map[string]any { return map[string]any{"line": s.earlier("ask")} },
	},
}

// expectedRun is what a run of a workflow comes to, whatever happens to it on the way.
type expectedRun struct {
	finished []string // the steps and visits, in order
	beside   []string // those that are executed beside each other; among the finished sorted
	refused  []string // steps of which an answer is refused, with the visit
	outputs  func(tag string) map[string]any
}

var expectedRuns = map[string]expectedRun{
	"voyage": {
		finished: strings.Fields("chart/1 crew/1 stores/1 weather/1 plan/1 rehearse/1 judge/1 plan/2 rehearse/2 judge/2 sail/1 arrive/1"),
		beside:   strings.Fields("crew/1 stores/1 weather/1"),
		refused:  []string{"sail/1"},
		outputs: func(tag string) map[string]any {
			return map[string]any{
				"title": "voyage " + tag, "missing": 3, "crew": []string{tag}, "weather": introduction("weather", 1), "notes": "notes 2", "knots": 7,
				"plan": fmt.Sprintf(`visit 2, {"count":3}, {"names":[%q]}`, tag), "line": `{"knots":7}{"verdict":"go"}`,
			}
		},
	},
	"consent": {
		finished: strings.Fields("begin/1 aside/1 prepare/1 ask/1 prepare/2 ask/2 publish/1"),
		beside:   strings.Fields("aside/1 prepare/1"),
		outputs: func(string) map[string]any {
			return map[string]any{
				"notice": "notice 2", "aside": introduction("aside", 1), "remark": "now it is good", "line": `{"approved":true,"comment":"now it is good"}`,
			}
		},
	},
}

// decisions are the decisions in the workflow consent, by visit.
var decisions = []map[string]string{{"decision": "reject", "comment": "not yet"}, {"decision": "approve", "comment": "now it is good"}}

// reply makes the whole answer of a step.
func (p stepReply) reply(s *stepPrompt) string {
	text := introduction(s.step, s.visit)
	if p.outputs == nil {
		return text
	}
	raw, err := json.Marshal(p.outputs(s))
	if err != nil {
		panic(err) // they are made above
	}
	return text + "\n\n```json\n" + string(raw) + "\n```"
}

// introduction is what the model says before a step's outputs.
func introduction(step string, visit int) string {
	var words []string
	for word := range 24 {
		words = append(words, fmt.Sprintf("%s-%d-%d", step, visit, word))
	}
	return strings.Join(words, " ")
}

// earlier is a step's outputs as STEP_CONTEXT shows them.
func (s *stepPrompt) earlier(step string) string {
	_, outputs, _ := strings.Cut(s.context, "\noutputs of earlier steps:\n")
	found := regexp.MustCompile(`(?m)^- ` + step + `: (.*)$`).FindStringSubmatch(outputs)
	if found == nil {
		return ""
	}
	return found[1]
}
