package continuo

import (
	"fmt"
	"strings"
)

// OverflowError says that the required parts of a request do not fit into the model's context window or, where
// ModelWindow is 0, into the limits of the view. Nothing was shortened.
type OverflowError struct {
	View string
	// Model is the provider's name of the model, ModelWindow its context window in tokens.
	Model       string
	ModelWindow int
	// Limits bound the messages; 0 means no limit.
	Limits Size
	// The sizes of the parts that cannot be left out. OpenCycle is the rest of an open cycle that the view must show
	// completely.
	Prompt, NewestUser, OpenGroup, OpenCycle Size
	// Answer is how many tokens of the context window are reserved for the answer: Output, the model's maximum
	// (models.NAME.max_output_tokens), or Reserved, what the prompt leaves of the view's reserve, whichever is larger.
	Answer, Output, Reserved int
}

// TruncatedError says that a request which must show a conversation whole would leave some of it out or shorten it. Nothing
// was appended.
type TruncatedError struct {
	View string
	// Model is the provider's name of the model, ModelWindow its context window in tokens; 0 for unknown.
	Model       string
	ModelWindow int
	// Entries is how many entries the conversation would have, Left how many of them the request would leave out or
	// replace by a summary, and Shortened how many it would shorten.
	Entries, Left, Shortened int64
	// Shown is the size of what the request would show.
	Shown Size
}

// Error names the sizes, and says what would change the outcome.
func (e *TruncatedError) Error() string {
	window := ""
	if e.ModelWindow > 0 {
		window = fmt.Sprintf(", whose window has %d tokens", e.ModelWindow)
	}
	return fmt.Sprintf("context_overflow: truncation is disabled, but of the %d entries of the conversation the view %s leaves out %d and shortens %d: it shows %d tokens to the model %s%s; send truncation auto, name another view, or begin a new conversation",
		e.Entries, e.View, e.Left, e.Shortened, e.Shown.Tokens, e.Model, window)
}

// Messages returns the total size of the parts that are messages of the log.
func (e *OverflowError) Messages() Size { return e.NewestUser.Add(e.OpenGroup).Add(e.OpenCycle) }

// Error names the size of each part and the setting that would change the outcome.
func (e *OverflowError) Error() string {
	if e.ModelWindow == 0 {
		return fmt.Sprintf("context_overflow: the view %s allows %s, but %s; raise the limits of the view (context.max_messages, context.max_chars, context.max_tokens) or of the request, or shorten the message",
			e.View, limitText(e.Limits), e.parts(sizeText))
	}
	tokens := func(size Size) string { return fmt.Sprintf("%d tokens", size.Tokens) }
	total := e.Prompt.Tokens + e.Answer + e.Messages().Tokens
	return fmt.Sprintf("context_overflow: the window of the model %s has %d tokens, but the system prompt and the tools take %d, %d are held back for the answer, and %s: %d tokens in all; %s",
		e.Model, e.ModelWindow, e.Prompt.Tokens, e.Answer, e.parts(tokens), total, e.help())
}

// parts lists the parts that are messages of the log, with their sizes.
func (e *OverflowError) parts(text func(Size) string) string {
	parts := []string{"the newest user message takes " + text(e.NewestUser)}
	if e.OpenGroup != (Size{}) {
		parts = append(parts, "the newest tool calls with their results take "+text(e.OpenGroup)+" at the least")
	}
	if e.OpenCycle != (Size{}) {
		parts = append(parts, "the rest of the open cycle takes "+text(e.OpenCycle))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// help says how to make the request fit into the context window.
func (e *OverflowError) help() string {
	const window = "raise models.NAME.context_window if the model has a larger window, or choose another model"
	if e.Prompt.Tokens >= e.ModelWindow {
		return "shorten the prompts or deny tools (tools.deny), " + window
	}
	return e.helpBy() + "shorten the message, " + window
}

// helpBy names the settings that reserve more than is left, with the values at which the request fits.
func (e *OverflowError) helpBy() string {
	left := e.ModelWindow - e.Prompt.Tokens - e.Messages().Tokens
	if left <= 0 {
		return ""
	}
	var settings []string
	if e.Output > left {
		settings = append(settings, fmt.Sprintf("models.NAME.max_output_tokens to %d or less", left))
	}
	if e.Reserved > left {
		settings = append(settings, fmt.Sprintf("chat.reserved_tokens to %d or less", left+e.Prompt.Tokens))
	}
	return "lower " + strings.Join(settings, " and ") + ", "
}

func sizeText(s Size) string {
	return fmt.Sprintf("%d messages, %d characters, %d tokens", s.Messages, s.Chars, s.Tokens)
}

func limitText(s Size) string {
	text := func(n int) string {
		if n == 0 {
			return "any number of"
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s messages, %s characters, %s tokens", text(s.Messages), text(s.Chars), text(s.Tokens))
}
