package continuo

import "context"

// IndexStore is an index over the words of entries. It finds places where terms occur; package fulltext
// says what the terms of a text are, and looks at the entries again. The index runs behind the log: who
// searches has what is missing indexed first.
type IndexStore interface {
	// Unindexed lists conversations whose newest entries or title the index does not have.
	Unindexed(ctx context.Context, query UnindexedQuery) ([]Unindexed, error)
	// Index adds to the index of a conversation. It fails with a *ConflictError when the index is not at
	// After: somebody else was faster. A conversation that is gone is ErrNotFound.
	Index(ctx context.Context, batch IndexBatch) error
	// Places finds documents that have all terms of a query, the newest first. Those of archived and
	// deleted conversations are not found.
	Places(ctx context.Context, query PlaceQuery) ([]Place, error)
	// ForgetIndex empties the index of a conversation, so that it is made anew; ErrNotFound.
	ForgetIndex(ctx context.Context, conversationID string) error
}

// UnindexedQuery selects conversations: one, or those of a project, or, with neither, all.
type UnindexedQuery struct {
	ConversationID, ProjectID string
	Limit                     int // at least 1
}

// Unindexed says how far the index of a conversation is.
type Unindexed struct {
	Conversation Conversation
	Indexed      int64 // the newest of the conversation's own entries that the index has; not below ForkSeq
	Title        bool  // the index has the title as it is
}

// IndexBatch adds documents of the entries above After up to Through.
type IndexBatch struct {
	ConversationID string
	After, Through int64
	// Title is the title that a document with Seq 0 is of, which takes the place of the one before; nil
	// leaves it.
	Title     *string
	Documents []Document
}

// Document is the terms of one entry; an entry without terms has none.
type Document struct {
	Seq   int64 // 0: the conversation's title
	Added int64 // when, as Unix nanoseconds: orders places, the newest first
	Terms []string
}

// IndexTerm is a term that a document must have, or with Prefix one that begins so.
type IndexTerm struct {
	Text   string
	Prefix bool
}

// PlaceQuery selects places in a project, or in one conversation's own entries From to To (0: no limit).
type PlaceQuery struct {
	ProjectID      string
	ConversationID string // "": all of the project
	// UserID and Labels narrow the conversations of the project; see ConversationQuery.
	UserID   string
	Labels   map[string]string
	From, To int64
	Terms    []IndexTerm // at least one; all have to occur
	// Before continues after the last place of the page before; zero for the first page.
	Before Place
	Limit  int // at least 1
}

// Place is where a document stands.
type Place struct {
	ConversationID string `json:"conversation_id"`
	Seq            int64  `json:"seq"` // 0: the title
	// Order is higher for what was added later. It is the engine's own, and only good for Before.
	Order int64 `json:"order"`
}
