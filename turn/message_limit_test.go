package turn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// A question and the calls that it leads to may be more messages than the limit, with any window of the model: the limit
// then bounds the history around them, and the conversation goes on.
func TestALimitOnMessagesBelowTheOpenCallsBlocksNothing(t *testing.T) {
	for _, modelWindow := range []int{0, 128_000} {
		t.Run(fmt.Sprintf("a window of %d", modelWindow), func(t *testing.T) {
			h := newHouse(t, textAnswer("hello"), asks("echo 1", "echo 2", "echo 3", "echo 4"), asks("echo 5", "echo 6", "echo 7"), textAnswer("done"), textAnswer("good bye"))
			h.model.window = modelWindow
			h.runner.Tools = tool.Set{echo{name: "echo"}}
			h.limit(window.Limits{Messages: 3})
			for _, message := range []string{"hi", "count", "bye"} {
				h.send(message)
			}
			want := []string{
				"user hi",
				"user count",
				"user count, assistant, tool 1, tool 2, tool 3, tool 4",
				"user count, user [Earlier messages truncated], assistant, tool 5, tool 6, tool 7",
				"user bye",
			}
			for i, shown := range shownTo(t, h.model) {
				if !strings.HasSuffix(shown, want[i]) {
					t.Errorf("request %d shows %q, not %q", i, shown, want[i])
				}
			}
			h.checkReplays()
		})
	}
}

// shownTo lists the roles of the messages of each request, with the texts of users and tools.
func shownTo(t *testing.T, m *script) (shown []string) {
	t.Helper()
	for _, body := range m.bodies {
		var request struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, message := range request.Messages {
			text := message.Role
			if slices.Contains([]string{"user", "tool"}, message.Role) {
				text += " " + message.Content
			}
			texts = append(texts, text)
		}
		shown = append(shown, strings.Join(texts, ", "))
	}
	return shown
}
