// Package messages reads single messages of chat completions and of Anthropic's Messages API as entries. Imports of
// files and requests of clients share it: an import keeps every byte of its source, a request leaves out cache marks.
//
// A message is read by itself. Whether calls have their results, and results their calls, is checked by the reader of
// the whole list.
package messages
