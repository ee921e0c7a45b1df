// Package continuo defines a conversation log: entries, conversations, the log with its rules, the interface of the
// store beneath it, and the plan of a request.
//
// A conversation is one append-only sequence of entries, numbered from 1 without a gap. An entry is a superset of an
// OpenAI chat message. [Log] is the only way to write: it refuses entries that could not be sent to a model later (a
// tool result without its call, a message inside an open group), so every stored log can be rendered. A [Store] keeps
// rows and checks no rules.
//
// Begin with [NewLog] over a store (package store/sqlite or store/postgres), [Log.Create] and [Log.Append]. Package
// turn builds the request for a model (turn.Build) and runs models with tools (turn.Runner). docs/library.md shows
// both.
//
// Pitfalls: order comes from seq alone, never from a clock or an id. Entries that a fork inherited keep the id of the
// conversation that they were written to. Content is kept as received; a string and a list with one text part are
// different contents. A [Conversation] is a snapshot that does not follow the log.
package continuo
