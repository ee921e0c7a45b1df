// Package model is the interface to language models: a [Model] sends the bytes of a whole request, as a
// renderer wrote them, and streams the answer as [Delta]s; an [Answer] accumulates those into the entry for
// the log, even if the stream broke.
//
// The vendors are in the packages below: model/openai for everything that speaks OpenAI's chat completions,
// model/anthropic, and model/demo, which needs no network. Each passes model/modeltest.
//
// Pitfalls: the end of a stream is not the end of an answer. A Model reports success only when the provider
// said that the answer is complete; otherwise it returns an [*Error]. The finish reason does not say whether
// there are calls: some servers end a message with calls by "stop".
package model
