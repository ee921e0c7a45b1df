// Package continuo holds the words of a conversation log: entries, conversations, the log with its
// rules, the store it stands on, and the plan of a request.
//
// A conversation is one append-only sequence of entries, numbered from 1 without a gap. An entry is a
// superset of an OpenAI chat message. [Log] is the only way in: it refuses what could not be shown to
// a model later (a tool result without its call, a message inside an open group), so that whatever is
// stored can be rendered. A [Store] keeps rows and knows no rules.
//
// Begin with [NewLog] over a store (package store/sqlite or store/postgres), [Log.Create] and
// [Log.Append]. Package turn builds the request that a model gets (turn.Build) and runs models with
// tools (turn.Runner). docs/library.md shows both.
//
// Pitfalls: order comes from seq alone, never from a clock or an id. Entries that a fork inherited
// keep the id of the conversation that they were written to. Content is kept as it came; a string and
// a list with one text part are different contents. A [Conversation] is a value that does not follow the log.
package continuo
