package turn_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

type endless struct{ given int }

func (*endless) Info() model.Info {
	return model.Info{Provider: "script", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (e *endless) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for i := range 64 << 10 {
			d := model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprint(i), Type: "function", Name: strings.Repeat("n", 1000)}}
			e.given += 1000
			if !yield(d, nil) {
				return
			}
		}
		yield(model.Delta{}, &model.Error{Reason: continuo.ReasonNetwork, Message: "end"})
	}
}

func TestEndlessCallNames(t *testing.T) {
	h := newHouse(t)
	m := &endless{}
	h.runner.Model = m
	_, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if m.given > 17<<20 {
		t.Errorf("took %d MB of an answer, the limit is 16 MB; %v", m.given>>20, fmt.Sprint(err)[:min(200, len(fmt.Sprint(err)))])
	}
}
