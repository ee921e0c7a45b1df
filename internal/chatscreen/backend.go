// Package chatscreen is the full-screen terminal of continuo chat: a [Model] of Bubble Tea that shows one conversation,
// takes messages and commands, and asks a person about tool calls. It decides what keys mean and what is shown; all that
// happens to conversations is behind a [Backend].
//
// Input and turns are independent: while an answer arrives, lines can be typed, and those that are sent wait in a queue.
// A question about a tool call is answered only by a line that was begun after the terminal had shown the question; see
// question.go for how that is known.
package chatscreen

import (
	"context"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// Backend is the conversation behind the screen. The screen calls Take and Open one at a time and not while a turn of
// theirs runs; the other methods may be called at any time, also concurrently.
type Backend interface {
	// State describes the conversation, and who gets the next message.
	State() State
	// Entries reads the newest entries of the conversation, the oldest first.
	Entries(ctx context.Context) ([]continuo.Entry, error)
	// Take sends a message or executes a command. Width is that of the command's output. The context is that of the
	// turn, too: canceling it stops the turn.
	Take(ctx context.Context, line string, width int) (Result, error)
	// Open makes another conversation the screen's.
	Open(ctx context.Context, id string) error
	// Decide reports a decision on a call that waits for one, Waits whether it still does.
	Decide(ctx context.Context, asked turn.Event, decision turn.Decision) error
	Waits(ctx context.Context, asked turn.Event) bool
	// Figures are what the next request holds, and what the conversation has used.
	Figures(ctx context.Context) (Figures, error)
	// History is what the person said in this and other conversations, the newest first.
	History(ctx context.Context) ([]string, error)
	// Complete lists what can follow in a line that ends at the cursor.
	Complete(ctx context.Context, line string) []Completion
	// Conversations lists conversations, the newest change first. With words it lists those in which they were said.
	Conversations(ctx context.Context, words string) ([]Choice, error)
}

// State describes a conversation.
type State struct {
	ID, Name string // "" before the first message
	Title    string
	Mode     string // "" for a plain chat
	Agent    string
	Model    string
	View     string
	// Broken is why the newest answer broke off; "" where it is complete.
	Broken string
}

// Result is what became of a line. At most one of Events, Pick and Leave is set.
type Result struct {
	// Events are the events of the turn that the line began.
	Events iter.Seq2[turn.Event, error]
	Output string // of a command, with styles
	// Draft is a text to be edited.
	Draft string
	// Changed says that the screen has another conversation now, with these entries before the turn.
	Changed bool
	Entries []continuo.Entry
	// Pick shows the list of conversations, Words are what it begins with.
	Pick  bool
	Words string
	Copy  bool // the newest answer
	Leave bool
}

// Figures count tokens and money.
type Figures struct {
	// The messages of the conversation, those that the next request shows, and their tokens; TokenLimit 0 is no limit.
	Shown, Messages    int64
	Tokens, TokenLimit int
	// PromptTokens are those of system messages and tools, which go with every request.
	PromptTokens int
	// Input with its Cached part and Output are all that was billed for the conversation; Cost is "" where no price is
	// known.
	Input, Cached, Output int64
	Cost                  string
}

// Completion is a text that replaces the end of a line.
type Completion struct {
	// Text is the whole line with the completion.
	Text string
	// Label and Help are what the list shows.
	Label, Help string
}

// Choice is a conversation in a list.
type Choice struct {
	ID, Name, Title string
	Last            string // the beginning of the newest message, or of what was found
	Entries         int64
	UpdatedAt       time.Time
	State           string // running, waiting, failed; "" for none
}
