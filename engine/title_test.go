package engine_test

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestTheFirstMessageIsTheTitle: a conversation that was created empty and without a title gets one from its first message;
// a title that it has stays.
func TestTheFirstMessageIsTheTitle(t *testing.T) {
	for name, rows := range map[string]struct{ begun, want string }{
		"without a title": {"", "When do I sow carrots?"},
		"with a title":    {"Garden", "Garden"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := failingModel(0, false)
			e := newRunEngine(t, storetest.NewMemory(), m, nil)
			empty, err := e.Log.Create(t.Context(), continuo.Conversation{Title: rows.begun})
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range []string{"When do I sow carrots?", "And leeks?"} {
				chat, err := e.Turns.Chat(t.Context(), request(empty.ID, message))
				endOf(t, chat, err)
			}
			now, err := e.Log.Conversation(t.Context(), empty.ID)
			if err != nil || now.Title != rows.want {
				t.Errorf("the title is %q, %v; want %q", now.Title, err, rows.want)
			}
		})
	}
}
