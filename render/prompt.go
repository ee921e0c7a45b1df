package render

import (
	_ "embed"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/window"
)

// promptText explains how to read the transcript after it.
//
//go:embed prompt.md
var promptText string

// Prompt writes the body of a request in the protocol "prompt": the system messages, and a text.
//
// If the plan shows only one user message, the text is that message, unchanged. Otherwise it is a transcript,
// in which no content can be mistaken for structure, after a short instruction on how to read it: its section
// CURRENT begins with the newest user message, and HISTORY has the earlier messages that the plan shows. The
// log's system entries follow the envelope's system messages. Tools are left out: the agent that answers has
// its own.
func Prompt(env continuo.Envelope, plan *window.Plan) ([]byte, error) {
	shown := unitsOf(plan)
	shown = slices.DeleteFunc(shown, func(u transcriptUnit) bool { return len(u.events) == 0 })
	if len(shown) == 0 {
		return nil, errNothingToShow()
	}
	env.Instruction = ""
	request := prompt.Request{System: transcriptSystem(env, plan)}
	if only := shown[0].head; len(shown) == 1 && only.Role == continuo.User && !isBlank(plainText(only.Content)) {
		request.Prompt = plainText(only.Content)
	} else {
		request.Prompt = promptText + "\n" + TranscriptOf(withCycle(plan)).String()
	}
	return rawjson.Marshal(request)
}

// withCycle returns a plan whose open cycle begins with the newest user message, even if nothing follows the
// message yet.
func withCycle(plan *window.Plan) *window.Plan {
	cycle := *plan
	cycle.Cycle = 0
	for i := range plan.Messages {
		if m := &plan.Messages[i]; m.Role == continuo.User && m.Seq > 0 {
			cycle.Cycle = m.Seq
		}
	}
	return &cycle
}
