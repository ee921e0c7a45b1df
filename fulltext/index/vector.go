package index

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// MaxDimensions bounds how many bytes a vector has.
const MaxDimensions = 4096

// Vector is the embedding of an entry: a signed byte for each dimension.
type Vector struct {
	Seq    int64
	Values []byte
}

// VectorStore keeps the embeddings of entries. They belong to the index of their conversation: what removes an entry from the
// index, or empties the index, removes its vector.
type VectorStore interface {
	// Unembedded lists conversations with indexed entries that have no vectors of a model yet, by their ids.
	Unembedded(ctx context.Context, query UnembeddedQuery) ([]Unembedded, error)
	// Embed adds vectors to a conversation, in the place of those of another model. It fails with a *continuo.ConflictError
	// when the vectors are not at After, and with continuo.ErrNotFound when the conversation is gone. Entries that are redacted
	// get none.
	Embed(ctx context.Context, batch VectorBatch) error
	// Vectors lists the vectors of a conversation's own entries, the newest first; none of another model.
	Vectors(ctx context.Context, query VectorQuery) ([]Vector, error)
}

// UnembeddedQuery selects conversations.
type UnembeddedQuery struct {
	Model string
	After string // only ids above it
	Limit int    // at least 1
}

// Unembedded is how far the vectors of a conversation are.
type Unembedded struct {
	Conversation continuo.Conversation
	Embedded     int64 // the newest of its own entries that was embedded; not below ForkSeq
	Indexed      int64 // the newest of its own entries that is indexed
}

// VectorBatch adds vectors of entries above After up to Through.
type VectorBatch struct {
	ConversationID, Model string
	After, Through        int64
	Vectors               []Vector
}

// Check reports what is wrong with a batch.
func (b VectorBatch) Check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("embed conversation %s: %w: %s", b.ConversationID, continuo.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if b.Through < b.After || b.Model == "" {
		return wrong("entries %d to %d of the model %q", b.After, b.Through, b.Model)
	}
	last := b.After
	for _, vector := range b.Vectors {
		if vector.Seq <= last || vector.Seq > b.Through || len(vector.Values) == 0 || len(vector.Values) > MaxDimensions {
			return wrong("a vector of %d dimensions for entry %d", len(vector.Values), vector.Seq)
		}
		last = vector.Seq
	}
	return nil
}

// VectorQuery selects the vectors of entries From to To.
type VectorQuery struct {
	ConversationID, Model string
	From, To              int64
	Limit                 int // at least 1
}
