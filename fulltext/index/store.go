package index

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Store is a full-text index of entries. It finds the positions of terms; package fulltext splits texts into terms
// and checks candidate entries again. The index lags behind the log: a search first has the missing entries indexed.
type Store interface {
	VectorStore
	// Unindexed lists conversations whose newest entries or current title are not indexed.
	Unindexed(ctx context.Context, query UnindexedQuery) ([]Unindexed, error)
	// Index adds to the index of a conversation. It fails with a *continuo.ConflictError when the index is not at After, because
	// another process indexed first, and with continuo.ErrNotFound when the conversation is gone.
	Index(ctx context.Context, batch Batch) error
	// Hits finds documents that have all terms of a query, the newest first. Documents of archived and deleted
	// conversations are not found.
	Hits(ctx context.Context, query HitQuery) ([]Hit, error)
	// AnyHits finds, for each term of a query by itself, the newest documents that have it, at most Limit for each. Before
	// is not used.
	AnyHits(ctx context.Context, query HitQuery) ([][]Hit, error)
	// Documents returns those of a conversation's own entries from to to, which is not open, by rising seq.
	Documents(ctx context.Context, conversationID string, from, to int64) ([]Document, error)
	// ForgetIndex empties the index of a conversation so that it is rebuilt; continuo.ErrNotFound.
	ForgetIndex(ctx context.Context, conversationID string) error
}

// UnindexedQuery selects one conversation, those of a project or, when both fields are empty, all.
type UnindexedQuery struct {
	ConversationID, ProjectID string
	Limit                     int // at least 1
}

// Unindexed is the indexing progress of a conversation.
type Unindexed struct {
	Conversation continuo.Conversation
	Indexed      int64 // the newest of the conversation's own entries that is indexed; not below ForkSeq
	Title        bool  // the current title is indexed
}

// Batch adds documents for the entries above After up to Through.
type Batch struct {
	ConversationID string
	After, Through int64
	// Title is the title that the document with Seq 0 indexes; it replaces the previous one. Nil leaves the title's
	// document as it is.
	Title     *string
	Documents []Document
}

// Document is the terms of one entry; an entry without terms has no document.
type Document struct {
	Seq   int64 // 0: the conversation's title
	Added int64 // time in Unix nanoseconds; results are ordered by it, the newest first
	Terms []string
}

// Term is a term that a document must have; with Prefix, any term with that prefix.
type Term = fulltext.IndexTerm

// HitQuery selects hits in a project, or in one conversation's own entries From to To (0: no limit).
type HitQuery struct {
	ProjectID      string
	ConversationID string // "": all of the project
	// UserID and Labels filter the project's conversations; see [continuo.ConversationQuery].
	UserID   string
	Labels   map[string]string
	From, To int64
	Terms    []Term // at least one; a hit has all of them
	// Before continues after the last hit of the previous page; zero for the first page.
	Before Hit
	Limit  int // at least 1
	// Expect is how many documents there are about in the conversation and the range. Default 0: not known.
	Expect int64
}

// Hit is a search hit: the position of a document.
type Hit struct {
	ConversationID string `json:"conversation_id"`
	Seq            int64  `json:"seq"` // 0: the title
	// Order is higher for documents that were added later. Its value is internal to the engine; use it only in Before.
	Order int64 `json:"order"`
}
