package render

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

func TestArrangeForStrictTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		messages string
		roles    continuo.Roles
		want     string
	}{
		"free": {
			`[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"q"}]`, continuo.RolesFree,
			`[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"q"}]`,
		},
		"one system message": {
			`[{"role":"system","content":"a"},{"role":"system","content":[{"type":"text","text":"b"}]},{"role":"user","content":"q"}]`, continuo.RolesStrict,
			`[{"role":"system","content":"a\n\nb"},{"role":"user","content":"q"}]`,
		},
		"no system message": {
			`[{"role":"system","content":"a"},{"role":"developer","content":"b"},{"role":"user","content":"q"},{"role":"assistant","content":"r"}]`, continuo.RolesNoSystem,
			`[{"role":"user","content":"a\n\nb\n\nq"},{"role":"assistant","content":"r"}]`,
		},
		"opener, marker and question": {
			`[{"role":"user","content":"first"},{"role":"system","content":"[Earlier messages truncated]"},{"role":"user","content":"q"}]`, continuo.RolesStrict,
			`[{"role":"user","content":"first\n\n<system>\n[Earlier messages truncated]\n</system>\n\nq"}]`,
		},
		"parts": {
			`[{"role":"user","content":"see","name":"ada"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]`, continuo.RolesStrict,
			`[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:"}}]}]`,
		},
		"an assistant first": {
			`[{"role":"system","content":"a"},{"role":"assistant","content":"r"},{"role":"user","content":"q"}]`, continuo.RolesStrict,
			`[{"role":"system","content":"a"},{"role":"user","content":"(The conversation goes on from here.)"},{"role":"assistant","content":"r"},{"role":"user","content":"q"}]`,
		},
		"two answers, the second with calls": {
			`[{"role":"user","content":"q"},{"role":"assistant","content":"r"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"x","tool_call_id":"1"},{"role":"tool","content":"y","tool_call_id":"2"}]`, continuo.RolesStrict,
			`[{"role":"user","content":"q"},{"role":"assistant","content":"r","tool_calls":[{"id":"1"}]},{"role":"tool","content":"x","tool_call_id":"1"},{"role":"tool","content":"y","tool_call_id":"2"}]`,
		},
		"a user after tool results": {
			`[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"x","tool_call_id":"1"},{"role":"user","content":"and now?"}]`, continuo.RolesStrict,
			`[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"x","tool_call_id":"1"},{"role":"assistant","content":"(No answer followed.)"},{"role":"user","content":"and now?"}]`,
		},
		"a refusal after a text": {
			`[{"role":"user","content":"q"},{"role":"assistant","content":"r"},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]`, continuo.RolesStrict,
			`[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"r"},{"type":"text","text":"no"}]}]`,
		},
		"system messages only": {
			`[{"role":"system","content":"a"}]`, continuo.RolesStrict,
			`[{"role":"system","content":"a"},{"role":"user","content":"(The conversation goes on from here.)"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []json.RawMessage
			if err := json.Unmarshal([]byte(c.messages), &messages); err != nil {
				t.Fatal(err)
			}
			got, err := Arrange(messages, c.roles)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(rawjson.MustMarshal(got)); text != c.want {
				t.Errorf("got\n%s, want\n%s", text, c.want)
			}
		})
	}
}

// Whatever a valid log holds, its strict form satisfies strict templates, and arranging it again changes nothing.
func TestStrictRequestsAreStrict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, genLog().Draw(t, "log"))
		rendered, err := OpenAIChat(messages, genOptions().Draw(t, "options"))
		if err != nil {
			t.Fatal(err)
		}
		system := []json.RawMessage{json.RawMessage(`{"role":"system","content":"a"}`), json.RawMessage(`{"role":"system","content":"b"}`)}
		for _, roles := range []continuo.Roles{continuo.RolesStrict, continuo.RolesNoSystem} {
			arranged, err := Arrange(append(system, rendered...), roles)
			if err != nil {
				t.Fatal(err)
			}
			if found := refused(CheckOpenAIChatStrict(arranged)); len(found) > 0 {
				t.Fatalf("%s: %v in\n%s", roles, found, rawjson.MustMarshal(arranged))
			}
			again, err := Arrange(arranged, roles)
			if err != nil || !bytes.Equal(rawjson.MustMarshal(again), rawjson.MustMarshal(arranged)) {
				t.Fatalf("%s: arranged again, %v:\n%s\nwas\n%s", roles, err, rawjson.MustMarshal(again), rawjson.MustMarshal(arranged))
			}
		}
	})
}

// More messages add bytes at the end, except where the first of them joins the last message.
func TestStrictBytesGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, genLog().Draw(t, "log"))
		env := continuo.Envelope{Model: "m", System: []string{"a", "b"}, Roles: continuo.RolesStrict}
		var before []byte
		for _, k := range boundaries(messages) {
			if k == 0 {
				continue
			}
			body, err := OpenAIChatRequest(env, messages[:k], Options{})
			if err != nil {
				continue // nothing to send yet
			}
			if !bytes.HasPrefix(body, allButLast(t, before)) {
				t.Fatalf("%d messages:\n%s\ndo not extend\n%s", k, body, before)
			}
			before = body
		}
	})
}

// allButLast is a request up to its last message. A request that has system messages only says nothing yet.
func allButLast(t *rapid.T, body []byte) []byte {
	if body == nil {
		return nil
	}
	var request struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	if len(request.Messages) < 3 {
		return body[:bytes.Index(body, []byte(`"messages"`))]
	}
	last := request.Messages[len(request.Messages)-1]
	return body[:len(body)-len(last)-len("]}")]
}
