package task

import "cmp"

// Limits bound the size of a request and of its history. The first three are the settings handoff.*.
type Limits struct {
	MaxMessages       int // of a history; the newest are kept. Default: 50
	UserMaxChars      int // characters of a user's message. Default: 8000
	AssistantMaxChars int // characters of every other message. Default: 150

	MaxBytes           int // of JSON: of a request, and of a history. Default: 4 MiB
	MaxFieldChars      int // characters of a text, and of an item of a list. Default: 32000
	MaxItems           int // of a list. Default: 200
	MaxAttachments     int // of a message. Default: 10
	AttachmentMaxChars int // characters of an attachment's content; longer ones are truncated. Default: 4000

	// MaxTokens is how many tokens a task's prompt has at most, counted with the encoding o200k. Default: 20000
	MaxTokens int
}

func (l Limits) orDefaults() Limits {
	return Limits{
		MaxMessages:        cmp.Or(max(l.MaxMessages, 0), 50),
		UserMaxChars:       cmp.Or(max(l.UserMaxChars, 0), 8000),
		AssistantMaxChars:  cmp.Or(max(l.AssistantMaxChars, 0), 150),
		MaxBytes:           cmp.Or(max(l.MaxBytes, 0), 4<<20),
		MaxFieldChars:      cmp.Or(max(l.MaxFieldChars, 0), 32_000),
		MaxItems:           cmp.Or(max(l.MaxItems, 0), 200),
		MaxAttachments:     cmp.Or(max(l.MaxAttachments, 0), 10),
		AttachmentMaxChars: cmp.Or(max(l.AttachmentMaxChars, 0), 4000),
		MaxTokens:          cmp.Or(max(l.MaxTokens, 0), 20_000),
	}
}

// suffixChars is the room for the truncation mark in a user's message.
const suffixChars = 100

// keepOf is how many characters of a text remain when it is truncated. Of a user's message it is the limit less 100; of
// a limit below 200, where that would be little or nothing, it is half.
func (l Limits) keepOf(role Role) int {
	if role == User {
		return max(l.UserMaxChars-suffixChars, l.UserMaxChars/2)
	}
	return l.AssistantMaxChars
}

// maxOf is how many characters a role's message may have without truncation.
func (l Limits) maxOf(role Role) int {
	if role == User {
		return l.UserMaxChars
	}
	return l.AssistantMaxChars
}
