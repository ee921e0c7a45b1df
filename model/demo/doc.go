// Package demo is the built-in model: it needs no key and no network, says that it is no real model, and
// answers only from the request that it was given, so that one can see what a model is shown.
//
// It reads a chat completions body and streams its answer word by word. What it does, in this order:
//
//   - After tool results it tells what each tool returned, shortened.
//   - Where the newest user message says "call NAME {json}" or "use NAME {json}", it makes that call, with
//     the arguments as they are written; several such words make calls side by side. Without the object
//     the arguments are {}. NAME is a tool that the request offers, with "_" or with "." (fs_read, fs.read);
//     of a tool that is not offered it says so. With tool_choice "none" it calls nothing.
//   - It answers a question with the sentence of an earlier user message that shares the most words with
//     it, the newest of equals: "Earlier you said: …". It understands nothing.
//   - It tells how many messages it was shown, the first and the newest of the user's, the one before the
//     newest ("You said before: …"), and whether a marker says that earlier ones were left out: a user
//     message whose first line stands in square brackets and speaks of earlier messages, or of what is truncated,
//     omitted or left out.
//
// A request with a system message that begins with NODE_BRIEF is for a step of a workflow, and is answered otherwise:
//
//   - The calls that the brief asks for, in the words above, are made, once in a visit; the history tells whether
//     they have been, because answers in a step begin with the step, the visit and the run.
//   - The answer tells what the step was shown: its inputs, the outputs of earlier steps, the results of its calls.
//   - It ends with a JSON object of all outputs that the step asks for. They are made up: a string is a sentence that
//     says so and quotes the nearest thing that there is: the newest tool result, else an input that an earlier step
//     gave, else the outputs of the newest step (the last in the list), else an input, else the brief. An array is one
//     such sentence or two, an object has one and the count, a number is the count. A boolean is false when the count
//     is 1, and true later. A string with an enum is the first of its values when the count is 1, and the last later.
//   - The count is that of the visit, and one more for each answer in it that was refused. So a loop ends whose last
//     node says "again" with the first value of an enum and "done" with the last, and a check of a boolean holds
//     when the answer is asked for once more.
//   - An answer that broke off is gone on with where it stands, if the request shows the same as before.
//
// A request with a system message that begins with CREW is for a role of a crew, whose name that message says. The
// model speaks once after each message of the user: where the text that it is shown has a line "User: …" and no words
// of its own behind it, it makes the calls that the user's newest message asks for, or tells what it was shown, what the
// user says and what another role said last. Otherwise it has nothing to add, and answers "....." and nothing else.
// So a cycle of roles for which it speaks ends by itself.
//
// The same body gives the same answer. Usage is a rough count, four characters a token. There are no
// other words that it obeys.
package demo

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/model"
)

// Options says how the model behaves. The zero value answers at once.
type Options struct {
	// Name is the model's name. Default "demo".
	Name string
	// WordDelay is how long it waits before each word, to look like a model at work. Default 0.
	WordDelay time.Duration
}

// Model is the built-in model. It is safe for concurrent use.
type Model struct{ options Options }

// New makes the model.
func New(options Options) *Model {
	options.Name = cmp.Or(options.Name, "demo")
	return &Model{options: options}
}

// Info says what the model is. It has no limit of its own.
func (m *Model) Info() model.Info {
	return model.Info{Provider: "demo", Name: m.options.Name, Protocol: model.ProtocolOpenAIChat, Demo: true}
}
