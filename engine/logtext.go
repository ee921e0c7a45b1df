package engine

import (
	continuo "github.com/continuo-log/continuo"
)

// isOurs reports whether a turn failed because a client stopped it, or a Continuo process ended.
func isOurs(reason continuo.FailureReason) bool {
	return reason == continuo.ReasonInterrupted || reason == continuo.ReasonCancelled
}

// reasonForLog redacts a reason for log events: it may repeat the output of agents and messages of people.
func reasonForLog(logText bool, reason string) string {
	if reason == "" || logText {
		return reason
	}
	return "the reason is in the conversation"
}
