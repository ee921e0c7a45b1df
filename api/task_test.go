package api

import (
	"testing"

	"github.com/continuo-log/continuo/task"
)

// Each field that a body may have is one that package task reads, and there are no others.
func TestTheFieldsOfTasksAreRead(t *testing.T) {
	for _, field := range taskFields {
		in := TaskRequest{Body: []byte(`{"` + field + `": 5}`)}
		if err := in.Check(); err == nil && field != "conversation_history" && field != "relevance" {
			t.Errorf("%s is not read", field)
		}
	}
	in := TaskRequest{Body: []byte(`{"conversation_history": 5, "relevance": 0.5, "compression": "semantic", "user_id": "ann"}`)}
	if err := in.Check(); err != nil || string(in.ConversationHistory) != "5" || in.Relevance == nil || in.Compression != task.Semantic || in.UserID != "ann" {
		t.Errorf("got %+v, %v", in, err)
	}
}
