package turn

import (
	"context"
	"time"
)

// Meter is told what turns do, so that it can be counted. Calls come from many goroutines and must be
// quick. Contexts carry the turn's own values, such as its trace.
type Meter interface {
	// Stage tells how long a stage of a turn took, just now.
	Stage(ctx context.Context, stage Stage, took time.Duration)
	// ToolCalled tells of a call of a tool and how long it ran, 0 when it did not. The name is that of a tool
	// that there is, "" for one that the model made up.
	ToolCalled(tool, outcome string, took time.Duration)
	// ApprovalAsked and ApprovalDecided tell of a call for which a person is asked, and what became of it.
	ApprovalAsked()
	ApprovalDecided(decision string, waited time.Duration)
	// EventsFlushed counts events that were written to the store.
	EventsFlushed(count int)
	// LeaseLost counts a turn of this process that may not write any more, TurnRecovered one that another
	// process had left behind.
	LeaseLost()
	TurnRecovered()
}

// Stage is a part of a turn's work whose time is measured.
type Stage string

// The stages.
const (
	StageBegin  Stage = "begin"       // from the lease to the appended input
	StageBuild  Stage = "build"       // making a request from the log
	StageFirst  Stage = "first_delta" // until the model's first piece
	StageModel  Stage = "model"       // the whole of one answer
	StageTool   Stage = "tool"        // one call of a tool
	StageAppend Stage = "append"      // one commit of entries
	StageFlush  Stage = "flush"       // one commit of streamed events
)

// The outcomes of a call of a tool.
const (
	ToolOK        = "ok"
	ToolFailed    = "failed"    // the tool said so
	ToolTimeout   = "timeout"   // it took too long
	ToolCancelled = "cancelled" // the turn ended meanwhile
	ToolDenied    = "denied"    // by the policy or a person: it did not run
	ToolNotRun    = "not_run"   // for another reason, such as the limit on rounds
)

// What becomes of a call for which a person was asked.
const (
	ApprovalAllowed   = "allowed"
	ApprovalDenied    = "denied"
	ApprovalExpired   = "expired"   // nobody decided in time
	ApprovalCancelled = "cancelled" // the turn ended meanwhile
)

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Stage(context.Context, Stage, time.Duration) {}
func (noMeter) ToolCalled(string, string, time.Duration)    {}
func (noMeter) ApprovalAsked()                              {}
func (noMeter) ApprovalDecided(string, time.Duration)       {}
func (noMeter) EventsFlushed(int)                           {}
func (noMeter) LeaseLost()                                  {}
func (noMeter) TurnRecovered()                              {}
