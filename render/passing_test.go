package render

import (
	"encoding/json"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// A role's requests to Anthropic: each message is a block of its own, and the mark stands before what the next request
// has not, so that the request before is read from the cache.
func TestCacheMarksStandOnBlocksThatStay(t *testing.T) {
	user := func(text string, passing bool) window.Message {
		return window.Message{Role: continuo.User, Content: continuo.Text(text), Passing: passing}
	}
	env := continuo.Envelope{Model: "m", System: []string{"You plan."}}
	request := func(messages ...window.Message) string {
		t.Helper()
		body, err := AnthropicRequest(env, messages, Options{Provider: "anthropic"})
		if err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		if broken := CheckAnthropic(sent.Messages); len(broken) > 0 {
			t.Fatalf("%v in %s", broken, body)
		}
		return string(body)
	}
	const marked = `,"cache_control":{"type":"ephemeral"}}`
	own := window.Message{Seq: 3, Role: continuo.Assistant, Content: continuo.Text("a plan")}
	shared := []window.Message{user("User: Hello", false), user("Assistant (B): built", false)}
	first := request(append(shared, user("[CURRENT REQUEST]", true))...)
	if !strings.Contains(first, `"Assistant (B): built"`+marked) || strings.Contains(first, `"[CURRENT REQUEST]"`+marked) {
		t.Errorf("the mark is elsewhere: %s", first)
	}
	second := request(append(append(shared, own), user("Assistant (B): tested", false), user("[CURRENT REQUEST]", true))...)
	head, _, _ := strings.Cut(first, marked+`,{"type":"text","text":"[CURRENT`)
	if !strings.HasPrefix(second, head) || !strings.Contains(second, `"Assistant (B): tested"`+marked) {
		t.Errorf("not the head of the next request: %s\n%s", head, second)
	}
	if third := request(append(append(shared, own), user("[MORE] Nothing was said since.", true))...); !strings.Contains(third, `"a plan"`+marked) {
		t.Errorf("the mark is elsewhere: %s", third)
	}
}
