package turn

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Meter receives measurements of turns, for metrics. Its methods are called from many goroutines and must be quick.
// Contexts carry the turn's own values, such as its trace.
type Meter interface {
	// Stage reports how long a stage of a turn took that has just ended.
	Stage(ctx context.Context, stage Stage, took time.Duration)
	// ToolCalled reports a tool call and how long it ran, 0 when it did not run. The name is that of an existing tool,
	// "" for a name that the model made up.
	ToolCalled(tool, outcome string, took time.Duration)
	// ApprovalRequested and ApprovalDecided report a call that waits for a person, and its outcome.
	ApprovalRequested()
	ApprovalDecided(decision string, waited time.Duration)
	// EventsFlushed counts events that were written to the store.
	EventsFlushed(count int)
	// Charged reports what requests used, once it is stored with the turn.
	Charged(charges []continuo.Spending)
	// LeaseLost counts turns of this process that lost their lease, TurnRecovered turns that another process left
	// behind and this one recovered.
	LeaseLost()
	TurnRecovered()
}

// Stage is a measured part of a turn.
type Stage string

// The stages.
const (
	StageBegin  Stage = "begin"       // reading the end of the log and appending the input
	StageBuild  Stage = "build"       // building a request from the log
	StageFirst  Stage = "first_delta" // until the model's first delta
	StageModel  Stage = "model"       // the whole of one answer
	StageTool   Stage = "tool"        // one call of a tool
	StageAppend Stage = "append"      // one commit of entries
	StageFlush  Stage = "flush"       // one commit of streamed events
)

// The outcomes of a tool call.
const (
	ToolOK        = "ok"
	ToolFailed    = "failed"    // the tool returned a failure
	ToolTimeout   = "timeout"   // it took too long
	ToolCancelled = "cancelled" // the turn ended meanwhile
	ToolDenied    = "denied"    // by the policy or a person: it did not run
	ToolNotRun    = "not_run"   // for another reason, such as the limit on rounds
)

// The outcomes of a request for a person's decision.
const (
	ApprovalAllowed   = "allowed"
	ApprovalDenied    = "denied"
	ApprovalExpired   = "expired"   // no decision in time
	ApprovalCancelled = "cancelled" // the turn ended meanwhile
)

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Stage(context.Context, Stage, time.Duration) {}
func (noMeter) ToolCalled(string, string, time.Duration)    {}
func (noMeter) ApprovalRequested()                          {}
func (noMeter) ApprovalDecided(string, time.Duration)       {}
func (noMeter) Charged([]continuo.Spending)                 {}
func (noMeter) EventsFlushed(int)                           {}
func (noMeter) LeaseLost()                                  {}
func (noMeter) TurnRecovered()                              {}
