package task

import "fmt"

// ErrorType classifies a [ValidationError] for programs.
type ErrorType string

// The types of a ValidationError.
const (
	TypeError    ErrorType = "type_error"    // a value of another type than required
	MissingField ErrorType = "missing_field" // a required field is missing
	InvalidValue ErrorType = "invalid_value" // the right type, but not an allowed value
)

// ValidationError is why a request was refused.
type ValidationError struct {
	Type    ErrorType
	Field   string // the name of the field, or the path of a part, such as conversation_history[3].role
	Index   int    // of the message or the item in its list, from 0; -1 for a fault in neither
	Message string
}

func (e *ValidationError) Error() string { return e.Message }

func refuse(kind ErrorType, field, format string, args ...any) *ValidationError {
	return &ValidationError{Type: kind, Field: field, Index: -1, Message: fmt.Sprintf(format, args...)}
}

func refuseAt(index int, kind ErrorType, field, format string, args ...any) *ValidationError {
	e := refuse(kind, field, format, args...)
	e.Index = index
	return e
}

// Severity says how much a warning matters.
type Severity string

// The severities of warnings.
const (
	Low    Severity = "low"
	Medium Severity = "medium"
)

// Warning describes a change to an accepted request that the caller may not expect.
type Warning struct {
	Severity   Severity `json:"severity"`
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion"`
}

func tooManyMessages(have, most int) Warning {
	return Warning{
		Severity:   Medium,
		Message:    fmt.Sprintf("conversation_history has %d messages, truncating to most recent %d", have, most),
		Suggestion: "Consider providing only recent relevant messages",
	}
}

// unreadableTimestamps warns about timestamps that are kept as text; first is one of a message at index.
func unreadableTimestamps(count int, first string, index int) Warning {
	message := fmt.Sprintf("conversation_history has a timestamp that cannot be read, '%s' at index %d", first, index)
	if count > 1 {
		message = fmt.Sprintf("conversation_history has %d timestamps that cannot be read, the first '%s' at index %d", count, first, index)
	}
	return Warning{Severity: Low, Message: message, Suggestion: "Write timestamps as RFC 3339 does, such as 2025-10-29T13:20:15Z"}
}
