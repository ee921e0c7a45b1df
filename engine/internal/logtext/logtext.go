// Package logtext keeps message text out of log events: a reason or an error may repeat the output of agents and the
// messages of people.
package logtext

import (
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// IsStopped reports whether a turn failed because a client stopped it, or a Continuo process ended: not because of its
// model, whose text such a failure lacks.
func IsStopped(reason continuo.FailureReason) bool {
	return reason == continuo.ReasonInterrupted || reason == continuo.ReasonCancelled
}

// Reason is a reason for a log event. Where logText is false, only its place is logged.
func Reason(logText bool, reason string) string {
	if reason == "" || logText {
		return reason
	}
	return "the reason is in the conversation"
}

// Failure is the text of a turn's failure for a log event, without the output of a program that replaces the model:
// that output may contain anything, secrets too, and is message text.
func Failure(logText, byProgram bool, failure *continuo.TurnError) string {
	if logText || !byProgram || IsStopped(failure.Reason) {
		return failure.Message
	}
	return "the program's message is in the conversation"
}

// Error is the error of a model for a log event, without the output of a program, as [Failure].
func Error(logText bool, info model.Info, err error) error {
	failure := model.AsError(err)
	if logText || !info.TakesPrompt() || IsStopped(failure.Reason) {
		return err
	}
	return fmt.Errorf("%s failed: %s", info.Name, failure.Reason)
}
