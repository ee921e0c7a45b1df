// Package gateway serves the model APIs that clients speak, so that any of them works with Continuo after its base URL is
// changed, and its whole history is in the log: OpenAI's chat completions, Responses and Conversations, Anthropic's
// messages and Gemini's generateContent.
//
// A client keeps its history itself, or the server does. In the first case a request is read as entries, system messages
// and tools (package request), its conversation is found (package match), what is new is appended, and the request is sent
// on as it came, where the model speaks the same protocol: only the credentials and the name of the model are replaced.
// The bytes of the answer go to the client unchanged, each kept in the store before it is sent, while the turn reads the
// answer for the log (relay.go). In the second case, and for a model of another protocol, the request is built from the
// log, and an encoder writes the answer in the form of the endpoint.
//
// A stream never ends without the last event of its protocol: where the upstream's answer breaks off, the client gets the
// protocol's own error. When the client leaves, the request to the upstream is cancelled, and what arrived is in the log.
package gateway
