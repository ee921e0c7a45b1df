package catalog

import (
	continuo "github.com/continuo-log/continuo"
)

// IsOurs reports whether a turn failed because a client stopped it, or a Continuo process ended.
func IsOurs(reason continuo.FailureReason) bool {
	return reason == continuo.ReasonInterrupted || reason == continuo.ReasonCancelled
}

// ReasonForLog redacts a reason for log events: it may repeat the output of agents and messages of people.
func ReasonForLog(logText bool, reason string) string {
	if reason == "" || logText {
		return reason
	}
	return "the reason is in the conversation"
}
