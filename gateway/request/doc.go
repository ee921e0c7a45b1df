// Package request reads the requests of clients: a body of chat completions or of Anthropic's Messages API becomes
// entries of the log, the system prompt, and tools.
//
// A client sends its whole history with every request. Reading is strict about JSON and types, and tolerant about the
// history: what breaks a rule of the log is reported as a [Problem] beside the entries, because a client that is
// forwarded may send what its upstream accepts. Cache marks, which move from message to message, are left out of the
// entries; data that an entry cannot represent are kept as vendor data, as package render expects them.
//
// The body itself is not kept, but where each message is in it.
package request
