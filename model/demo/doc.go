// Package demo is the built-in model: it needs no key and no network, says that it is not a real model, and
// answers only from its request, so that a user can see what a model is shown.
//
// It reads a chat completions body and streams its answer word by word. It applies these rules in order:
//
//   - After tool results it repeats what each tool returned, shortened.
//   - If the newest user message says "call NAME {json}" or "use NAME {json}", it makes that call, with
//     the arguments as written; several such phrases make parallel calls. Without the object
//     the arguments are {}. NAME is a tool that the request offers, with "_" or with "." (fs_read, fs.read);
//     for a tool that is not offered it says so. With tool_choice "none" it calls nothing.
//   - It answers a question with the sentence of an earlier user message that shares the most words with
//     it, the newest of equals: "Earlier you said: …". It understands nothing.
//   - It says how many messages it was shown, the first and the newest of the user's, the one before the
//     newest ("You said before: …"), and whether a marker says that earlier ones were left out: a user
//     message whose first line is in square brackets and mentions earlier messages, or messages truncated,
//     omitted or left out.
//
// A request with a system message that begins with NODE_BRIEF is for a step of a workflow, and is answered
// differently:
//
//   - It makes the calls that the brief asks for, in the phrases above, once in a visit; the history shows whether
//     they were made, because answers in a step begin with the step, the visit and the run.
//   - The answer lists what the step was shown: its inputs, the outputs of earlier steps, the results of its calls.
//   - It ends with a JSON object of all outputs that the step asks for. They are made up: a string is a sentence that
//     says so and quotes the nearest thing that there is: the newest tool result, else an input that an earlier step
//     gave, else the outputs of the newest step (the last in the list), else an input, else the brief. An array is one
//     such sentence or two, an object has one and the count, a number is the count. A boolean is false when the count
//     is 1, and true later. A string with an enum is the first of its values when the count is 1, and the last later.
//   - The count is the number of the visit, plus one for each refused answer in it. So a loop ends whose last
//     node says "again" with the first value of an enum and "done" with the last, and a check of a boolean holds
//     when the answer is asked for once more.
//   - An interrupted answer is continued where it ended, if the request shows the same as before.
//
// A request with a system message that begins with CREW is for a role of a crew, whose name that message
// says. The model speaks once after each user message: if its text has a line "User: …" with no message of
// its own after it, it makes the calls that the newest user message asks for, or repeats what it was shown,
// the user's message and another role's last message. Otherwise it has nothing to add, and answers only
// ".....". So a cycle of roles that all use this model ends by itself.
//
// The same body gives the same answer. Usage is a rough count of messages and definitions of tools, four characters a
// token. It understands no other instructions.
package demo

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/model"
)

// Options configures the model. The zero value answers at once.
type Options struct {
	// Name is the model's name. Default "demo".
	Name string
	// WordDelay is the pause before each word, to simulate a working model. Default 0.
	WordDelay time.Duration
}

// Model is the built-in model. It is safe for concurrent use.
type Model struct{ options Options }

// New makes the model.
func New(options Options) *Model {
	options.Name = cmp.Or(options.Name, "demo")
	return &Model{options: options}
}

// Info describes the model. It has no context limit of its own.
func (m *Model) Info() model.Info {
	return model.Info{Provider: "demo", Name: m.options.Name, Protocol: model.ProtocolOpenAIChat, Demo: true}
}
