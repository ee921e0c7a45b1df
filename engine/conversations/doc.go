// Package conversations finds, creates, changes, imports, archives and searches conversations, within what a caller may
// reach.
package conversations
