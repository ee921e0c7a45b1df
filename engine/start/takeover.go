package start

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/turn"
)

// Takeover is a running turn whose process is gone, and how it continues.
type Takeover struct {
	Conversation continuo.Conversation
	Turn         continuo.Turn
	MaxStarts    int // a turn that as many processes have started is closed instead
	// Prepare is called once the turn is taken; started says that its input is in the log.
	Prepare func(started bool) (*turn.Runner, turn.Input)
	// Ended is called once, when the turn has ended or was not taken.
	Ended func()
}

// TakeOver continues a turn in a goroutine of its own, unless another process was first. It reports false, and changes
// nothing, if no turn of the project may begin in this process.
func (ts *Turns) TakeOver(ctx context.Context, t Takeover) (bool, error) {
	project := t.Conversation.ProjectID
	if ts.life.Admit(project) != nil {
		t.Ended()
		return false, nil
	}
	turnCtx, cancel := ts.turnContext(withSession(ctx, t.Conversation), true)
	turnCtx, traced := span.StartTurn(turnCtx, ts.options.Tracer, t.Turn.ConversationID, t.Turn.ID)
	end := func() {
		traced.End()
		cancel(nil)
		ts.life.Dismiss(project)
		t.Ended()
	}
	taken, err := ts.keeper.TakeUp(turnCtx, t.Turn, t.MaxStarts)
	if taken == nil {
		end()
		return true, err
	}
	runner, input := t.Prepare(taken.Started)
	runs := ts.metrics.TurnRuns()
	go ts.run(runner, taken.Journal, input, func() { runs(); end() })
	return true, nil
}
