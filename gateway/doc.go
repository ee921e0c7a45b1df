// Package gateway serves the model APIs that clients speak, so that any of them works with Continuo after its base URL is
// changed, and its whole history is in the log. So far: OpenAI's chat completions and Anthropic's messages.
//
// A request is read as entries, system messages and tools (an endpoint's read), its conversation is found, what is new is
// appended, and the request is sent on as it came: only the credentials and the name of the model are replaced. The bytes
// of the answer go to the client unchanged, each kept in the store before it is sent, while the turn reads the answer for
// the log.
//
// A stream never ends without the last event of its protocol: where the upstream's answer breaks off, the client gets the
// protocol's own error. When the client leaves, the request to the upstream is cancelled, and what arrived is in the log.
package gateway
