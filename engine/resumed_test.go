package engine_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/store/storetest"
)

// A turn that goes on with others tells what all of them had said, also where one of them said nothing.
func TestWhatATurnGoesOnWith(t *testing.T) {
	failure := *modeltest.Fails(continuo.ReasonUpstream).Err
	failure.Retryable = true
	pieces := []string{"The capital ", "", "of France ", "is Paris."}
	asks := 0
	m := &actor{answer: func(asked) (string, error) {
		asks++
		if asks == len(pieces) {
			return pieces[asks-1], nil
		}
		return pieces[asks-1], &failure
	}}
	e := stage(t, storetest.NewMemory(), m, nil)
	r := request("s", "What is the capital of France?")
	r.Key, r.Detached = "k", true
	var got, turns []string
	for range pieces {
		chat, err := e.Chat(t.Context(), r)
		last := endOf(t, chat, err)
		resumed, err := e.Resumed(t.Context(), chat.Conversation.ID, last.TurnID)
		if err != nil {
			t.Fatal(err)
		}
		if resumed == nil {
			resumed = &engine.Resumed{}
		}
		got, turns = append(got, resumed.Response+"|"+last.Entry.Content.String()), append(turns, last.TurnID)
		if n := len(turns); n > 1 && resumed.TurnID != turns[n-2] {
			t.Errorf("try %d goes on with %q", n, resumed.TurnID)
		}
	}
	if got, want := strings.Join(got, "\n"), "|The capital \nThe capital |\nThe capital |of France \nThe capital of France |is Paris."; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
