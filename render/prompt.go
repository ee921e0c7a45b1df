package render

import (
	_ "embed"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/prompt"
)

// promptText tells how to read the transcript behind it.
//
//go:embed prompt.md
var promptText string

// Prompt writes the body of a request in the protocol "prompt": the system messages, and a text.
//
// Where the plan shows nothing but one message of the user, the text is that message, word for word. Else it is a
// transcript, in which nothing can pass for structure, behind a few words on how to read it: its section CURRENT
// begins with the newest message of the user, and HISTORY has what the plan shows of the time before. The log's
// system entries stand behind the envelope's system messages. Tools are left out: who answers has its own.
func Prompt(env continuo.Envelope, plan *continuo.Plan) ([]byte, error) {
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

// withCycle is a plan whose open cycle is the newest message of the user with all that follows, also where
// nothing follows yet.
func withCycle(plan *continuo.Plan) *continuo.Plan {
	cycle := *plan
	cycle.Cycle = 0
	for i := range plan.Messages {
		if m := &plan.Messages[i]; m.Role == continuo.User && m.Seq > 0 {
			cycle.Cycle = m.Seq
		}
	}
	return &cycle
}
