// Package match finds the conversation that a client's request belongs to.
//
// A client sends its whole history with every request. Each entry that the gateway appends is stored with a [Prefix]: a
// rolling hash over what the conversation says up to there, in a canonical form in which cache marks, key order,
// trailing white space, reasoning, call ids and the client's own reminders make no difference. The longest prefix of a
// request that a conversation of the project has says where the request belongs, and how much of it is new. A second
// hash of the call ids, one of the session that the client names and one of the system prompt distinguish conversations
// that say the same.
//
// The rules, in order: a conversation that the request names; the client's session (the table in client.go); the
// messages; else a new conversation. Calls beside a conversation (titles, suggestions, sub-agents) get conversations of
// the kind side. Where the messages differ from what a conversation has, the request becomes a fork at the last common
// entry, and where nothing is certain, a fork or a new conversation: never an entry in a wrong place.
//
// Pitfalls: the chain of hashes follows what the client repeats, so an answer that failed and that the client dropped
// is in the log but not in the chain; entries without prefixes (another endpoint or a recovery wrote them) are compared
// by reading them, as far as a few.
package match
