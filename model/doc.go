// Package model is the seam to language models: a [Model] takes the bytes of a whole request, as a
// renderer wrote them, and streams the answer as [Delta]s; an [Answer] adds those up to the entry that
// the log keeps, also when the stream broke.
//
// The vendors are in the packages below: model/openai for everything that speaks OpenAI's chat
// completions, model/anthropic, and model/demo, which needs no network. Each passes model/modeltest.
//
// Pitfalls: a stream that merely ends is not a finished answer. A Model reports success only when the
// provider said that the answer is over; whatever it cannot prove whole is an [*Error]. And the finish
// reason does not say whether there are calls: some servers end a message with calls by "stop".
package model
