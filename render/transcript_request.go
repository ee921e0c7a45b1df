package render

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

// The requests to models without tool calls: the system messages, and the transcript as the one message of
// the user. Tools are in the instruction, not in the request's own list. The log's system entries in the plan
// follow the instruction, in order, because the transcript has no event for them.

//go:embed instruction.md
var instructionText string

//go:embed instruction-calls.md
var instructionCalls string

//go:embed instruction-no-calls.md
var instructionNoCalls string

// Instruction explains to a model how to answer in the streaming form and which tools it can call: a text for
// continuo.Envelope.Instruction. It fails when two tools would have the same name.
func Instruction(tools []continuo.ToolSpec) (string, error) {
	if err := checkTools(tools); err != nil {
		return "", fmt.Errorf("write the transcript's instruction: %w", err)
	}
	if len(tools) == 0 {
		return instructionText + "\n" + instructionNoCalls, nil
	}
	var text strings.Builder
	text.WriteString(instructionText + "\n" + instructionCalls)
	for _, tool := range tools {
		fmt.Fprintf(&text, "\n## %s\n", ToolName(tool.Name))
		if description := strings.TrimSpace(tool.Description); description != "" {
			fmt.Fprintf(&text, "\n%s\n", escape(description))
		}
		schema := tool.Parameters
		if rawjson.IsNull(schema) {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		fmt.Fprintf(&text, "\nThe JSON Schema of \"args\": %s\n", rawjson.MustMarshal(schema))
	}
	return text.String(), nil
}

// OpenAIChatTranscript writes the body of a chat completions request that shows a plan as a transcript.
func OpenAIChatTranscript(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error) {
	env, message, err := transcriptMessage(env, plan)
	if err != nil {
		return nil, err
	}
	return OpenAIChatRequest(env, []window.Message{message}, o)
}

// ResponsesTranscript writes the body of a Responses API request that shows a plan as a transcript, in one user message.
func ResponsesTranscript(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error) {
	env, message, err := transcriptMessage(env, plan)
	if err != nil {
		return nil, err
	}
	return ResponsesRequest(env, []window.Message{message}, o)
}

// GeminiTranscript writes the body of a Gemini API request that shows a plan as a transcript, in one content of the user.
func GeminiTranscript(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error) {
	env, message, err := transcriptMessage(env, plan)
	if err != nil {
		return nil, err
	}
	return GeminiRequest(env, []window.Message{message}, o)
}

// transcriptMessage returns the user message that shows a plan as a transcript, and the envelope of its request.
func transcriptMessage(env continuo.Envelope, plan *window.Plan) (continuo.Envelope, window.Message, error) {
	blocks, _ := requestBlocks(plan)
	if len(blocks) == 0 {
		return env, window.Message{}, errNothingToShow()
	}
	env.System = transcriptSystem(env, plan)
	env.Tools, env.Own = nil, nil
	return env, window.Message{Role: continuo.User, Content: continuo.Text(strings.Join(blocks, ""))}, nil
}

// AnthropicTranscript writes the body of a Messages API request that shows a plan as a transcript. The text
// is split into blocks, one for each message of the log with its results, because the API can cache only up
// to a block's end. Cache marks are on the last block and before the newest two user messages: the text
// before a cycle does not change when the next one begins.
func AnthropicTranscript(env continuo.Envelope, plan *window.Plan) ([]byte, error) {
	texts, marks := requestBlocks(plan)
	if len(texts) == 0 {
		return nil, errNothingToShow()
	}
	message, w := blockMessage{role: "user"}, anthropicWriter{}
	for i, text := range texts {
		block := w.textBlock(text)
		if slices.Contains(marks, i) {
			block = withMark(block)
		}
		message.blocks = append(message.blocks, block)
	}
	env.System = transcriptSystem(env, plan)
	env.Tools, env.Own = nil, nil
	return anthropicBody(env, []blockMessage{message}, true)
}

func errNothingToShow() error {
	return fmt.Errorf("render the transcript: %w: no message to send: append a user message first", continuo.ErrInvalid)
}

// transcriptSystem returns the envelope's system messages, the instruction, and the log's system entries.
func transcriptSystem(env continuo.Envelope, plan *window.Plan) []string {
	system := slices.Clone(env.System)
	if env.Instruction != "" {
		system = append(system, env.Instruction)
	}
	for i := range plan.Messages {
		m := &plan.Messages[i]
		if text := plainText(m.Content); m.Role == continuo.System && !isBlank(text) {
			system = append(system, text)
		}
	}
	return system
}

// maxMarks is how many cache marks the transcript gets; the API accepts four, and one is on the system
// prompt.
const maxMarks = 3

// requestBlocks splits the transcript of a request into parts, one for each message of the log with its
// results; marks are the parts after which caching is useful. A part does not change while the window does
// not move, except those of the newest cycle: the section CURRENT and its thinking are removed later.
func requestBlocks(plan *window.Plan) (blocks []string, marks []int) {
	inCurrent, leading, gaps := false, false, false
	var cycles []int
	g := gapsOf(plan)
	for _, u := range unitsOf(plan) {
		gap := len(g.before(&u)) > 0
		if len(u.events) == 0 { // an empty answer
			continue
		}
		var text strings.Builder
		switch {
		case gap && len(blocks) == 0:
			leading = true
		case gap:
			text.WriteString(requestGap)
			gaps = gaps || !inCurrent
		}
		if u.current && !inCurrent {
			inCurrent = true
			text.WriteString("\n" + currentHeader + "\n")
		}
		for _, event := range u.events {
			text.WriteString("\n" + event.line() + "\n")
		}
		if u.head.Role == continuo.User {
			cycles = append(cycles, len(blocks))
		}
		blocks = append(blocks, text.String())
	}
	if len(blocks) > 0 {
		blocks[0] = requestHead(plan, leading, gaps) + blocks[0]
	}
	marks = append(marks, len(blocks)-1)
	for _, at := range slices.Backward(cycles) {
		if at > 0 && !slices.Contains(marks, at-1) && len(marks) < maxMarks {
			marks = append(marks, at-1)
		}
	}
	return blocks, marks
}

// requestGap marks a gap without a number, since the number could change while the window does not move.
var requestGap = "\n" + gapLine("") + "\n"

// requestHead returns the beginning of a request's transcript. A gap at the beginning is marked if others
// follow.
func requestHead(plan *window.Plan, leading, gaps bool) string {
	head := historyHeader + "\n"
	if shown, total := requestCount(plan); shown < total {
		head += countLine(shown, total, gaps) + "\n"
	}
	if leading && gaps {
		head += requestGap
	}
	return head
}

// requestCount returns the count of a request's transcript. It is the count of the epoch's first request,
// because a new number would change the text from its second line on with every cycle: total-shown messages
// are left out throughout the epoch, and later messages are not counted.
func requestCount(plan *window.Plan) (shown, total int64) {
	begun := plan.At
	left := plan.Window.Start - 1
	newestUser := int64(0)
	for i := range plan.Messages {
		m := &plan.Messages[i]
		if m.Entry == nil {
			continue
		}
		if m.Seq < plan.Window.Start {
			left--
		}
		if round := m.Entry.Round; round != nil && round.ViewHash == plan.ViewHash && round.Window.Epoch == plan.Window.Epoch {
			begun = min(begun, round.At)
		}
	}
	for i := range plan.Messages {
		m := &plan.Messages[i]
		if m.Entry == nil || m.Seq > begun || m.Role == continuo.System {
			continue
		}
		shown++
		if m.Role == continuo.User {
			newestUser = shown
		}
	}
	if newestUser > 0 && newestUser < shown { // an open cycle is not history
		shown = newestUser - 1
	}
	if left <= 0 {
		return 0, 0
	}
	return shown, shown + left
}
