package index

import (
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// searchTool is the tool whose results repeat other entries: they would be found before the originals. In the
// log an underscore replaces the dot, as protocols require.
const searchTool = "conversation.search"

// textsOf returns the searchable texts of an entry; none for a redacted one.
func textsOf(entry *continuo.Entry) []string {
	if entry.Redacted != nil || IsSearchResult(entry) {
		return nil
	}
	return fulltext.TextsOf(entry)
}

// IsSearchCall reports whether a tool searches: its results repeat other entries.
func IsSearchCall(name string) bool { return strings.ReplaceAll(name, "_", ".") == searchTool }

// batch collects the documents of one call of Index.
type batch struct {
	Batch
	newest int64 // latest time of the entries so far
	bytes  int   // size of the texts, whose memory the terms may share
}

func newBatch(conversationID string, after, newest int64) batch {
	return batch{Batch: Batch{ConversationID: conversationID, After: after, Through: after}, newest: newest}
}

// title adds the conversation's title.
func (b *batch) title(conversation continuo.Conversation) {
	b.Title = &conversation.Title
	if terms := fulltext.Terms(conversation.Title); len(terms) > 0 {
		b.Documents = append(b.Documents, Document{Added: nanoseconds(conversation.CreatedAt), Terms: terms})
	}
}

// add adds the next entry.
func (b *batch) add(entry *continuo.Entry) {
	b.Through = entry.Seq
	b.newest = max(b.newest, nanoseconds(entry.CreatedAt))
	texts := textsOf(entry)
	terms := fulltext.Terms(texts...)
	if entry.Role == continuo.User && len(terms) > 0 {
		terms = fulltext.AddSignals(terms, texts...)
	}
	if entry.Output != nil && texts != nil {
		terms = append(terms, largeOutput)
	}
	if len(terms) == 0 {
		return
	}
	for _, text := range texts {
		b.bytes += len(text)
	}
	b.Documents = append(b.Documents, Document{Seq: entry.Seq, Added: b.newest, Terms: terms})
}

// isEmpty reports whether there is nothing to index.
func (b *batch) isEmpty() bool { return b.Title == nil && b.Through == b.After }

// nanoseconds converts a time for documents; years outside of the range of int64 are clamped.
func nanoseconds(t time.Time) int64 {
	switch year := t.UTC().Year(); {
	case year < 1700:
		return time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	case year > 2250:
		return time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
	return t.UnixNano()
}
