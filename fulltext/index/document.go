package index

import (
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// searchTool is the tool whose results are of other entries: they would be found before what they found. In the
// log an underscore stands for the dot, as protocols want it.
const searchTool = "conversation.search"

// textsOf are the texts of an entry that are searched; none of one that was redacted.
func textsOf(entry *continuo.Entry) []string {
	if entry.Redacted != nil || entry.Role == continuo.Tool && strings.ReplaceAll(entry.ToolName, "_", ".") == searchTool {
		return nil
	}
	return fulltext.TextsOf(entry)
}

// batch gathers what one call of Index adds.
type batch struct {
	continuo.IndexBatch
	newest int64 // the latest time of the entries so far
	bytes  int   // of the texts, whose memory the terms may share
}

func newBatch(conversationID string, after, newest int64) batch {
	return batch{IndexBatch: continuo.IndexBatch{ConversationID: conversationID, After: after, Through: after}, newest: newest}
}

// title takes the conversation's title.
func (b *batch) title(conversation continuo.Conversation) {
	b.Title = &conversation.Title
	if terms := fulltext.Terms(conversation.Title); len(terms) > 0 {
		b.Documents = append(b.Documents, continuo.Document{Added: nanoseconds(conversation.CreatedAt), Terms: terms})
	}
}

// add takes the next entry.
func (b *batch) add(entry *continuo.Entry) {
	b.Through = entry.Seq
	b.newest = max(b.newest, nanoseconds(entry.CreatedAt))
	texts := textsOf(entry)
	terms := fulltext.Terms(texts...)
	if entry.Output != nil && texts != nil {
		terms = append(terms, largeOutput)
	}
	if len(terms) == 0 {
		return
	}
	for _, text := range texts {
		b.bytes += len(text)
	}
	b.Documents = append(b.Documents, continuo.Document{Seq: entry.Seq, Added: b.newest, Terms: terms})
}

// isEmpty reports whether there is nothing to tell the index.
func (b *batch) isEmpty() bool { return b.Title == nil && b.Through == b.After }

// nanoseconds is a time as documents have it; years that an int64 cannot hold are brought near.
func nanoseconds(t time.Time) int64 {
	switch year := t.UTC().Year(); {
	case year < 1700:
		return time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	case year > 2250:
		return time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
	return t.UnixNano()
}
