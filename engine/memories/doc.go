// Package memories keeps what is known of users: it extracts facts from their conversations in the background, and lists,
// adds, corrects, forgets and derives facts. A memory is a conversation of the kind memory ([continuo.Fact]); package
// memory decides what its entries mean.
//
// Extraction is durable without a queue: a mark in each conversation says through which entry it was read, and a mark in
// the memory through which change of the user's conversations. A process that is killed leaves marks behind, and the next
// turn of the user, or the next reader of the memory, continues from them. A fact has an idempotency key made of its
// source, so that reading a source twice adds nothing.
package memories
