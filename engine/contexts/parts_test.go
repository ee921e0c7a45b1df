package contexts

import (
	"encoding/json"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// planOf is a plan that shows entries of some roles, from seq 1 on.
func planOf(roles ...continuo.Role) *window.Plan {
	plan := &window.Plan{}
	for i, role := range roles {
		plan.Messages = append(plan.Messages, window.Message{Entry: &continuo.Entry{Seq: int64(i + 1), Role: role}})
	}
	return plan
}

func TestPartsOfRequests(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		plan *window.Plan
		want []RequestPart // without their places
	}{
		"chat completions": {
			`{"model":"m","tools":[{"type":"function","function":{"name":"read"}}],"messages":[{"role":"system","content":"ü"}, {"role":"user","content":"a"},{"role":"tool","content":"x"}]}`,
			planOf(continuo.User, continuo.Tool),
			[]RequestPart{{Kind: "tool", Name: "read"}, {Kind: "system", Role: "system"}, {Kind: "message", Role: "user", Seq: 1}, {Kind: "message", Role: "tool", Seq: 2}},
		},
		"messages": {
			`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":[{"name":"read"}]}`,
			planOf(continuo.User, continuo.Assistant),
			[]RequestPart{{Kind: "system"}, {Kind: "message", Role: "user", Seq: 1}, {Kind: "message", Role: "assistant", Seq: 2}, {Kind: "tool", Name: "read"}},
		},
		"joined messages": {
			`{"messages":[{"role":"user","content":"a b"}]}`, planOf(continuo.User, continuo.User),
			[]RequestPart{{Kind: "message", Role: "user"}},
		},
		"responses": {
			`{"instructions":"s","input":[{"role":"user","content":"a"}]}`, planOf(continuo.User),
			[]RequestPart{{Kind: "system"}, {Kind: "message", Role: "user", Seq: 1}},
		},
		"no object": {`[1]`, planOf(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := partsOf([]byte(test.body), test.plan)
			for i, part := range got {
				text := test.body[part.Offset : part.Offset+part.Bytes]
				if !json.Valid([]byte(text)) || text[0] != '{' && text[0] != '"' {
					t.Errorf("part %d is %q", i, text)
				}
				got[i].Offset, got[i].Bytes, got[i].Tokens = 0, 0, 0
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// What is counted for parts together is divided among them so that nothing is lost or counted twice.
func TestTokensOfParts(t *testing.T) {
	aligned, joined := planOf(continuo.User, continuo.Assistant), planOf(continuo.User, continuo.Assistant)
	for _, plan := range []*window.Plan{aligned, joined} {
		plan.Messages[0].Size.Tokens, plan.Messages[1].Size.Tokens = 7, 11
		plan.Totals.Tokens, plan.Totals.PromptSize.Tokens = 18, 101
	}
	for name, test := range map[string]struct {
		body string
		plan *window.Plan
		want []int
	}{
		"one by one": {
			`{"messages":[{"role":"system","content":"abcd"},{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":[{"name":"read", "x": 1}]}`,
			aligned,
			[]int{60, 7, 11, 41},
		},
		"joined": {`{"messages":[{"role":"user","content":"a b"}],"tools":[{"name":"read"}]}`, joined, []int{18, 101}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, part := range partsOf([]byte(test.body), test.plan) {
				got = append(got, part.Tokens)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("tokens %v, want %v", got, test.want)
			}
		})
	}
}
