package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
)

// Runner makes the vectors of entries that are indexed. Several may run on one store.
type Runner struct {
	Log      *continuo.Log
	Store    index.VectorStore
	Embedder Embedder
}

const (
	atOnce   = 32    // texts in one request
	scanned  = 2_000 // entries without a text in one batch
	listed   = 64    // conversations in one page
	maxChars = 2_000 // of a text
)

// Run makes all vectors that are missing at its start; each request is charged to the user of its conversation. It ends with the first
// error of the embedder, but for ErrLater: then it returns that after the conversations of others.
func (r Runner) Run(ctx context.Context) error {
	var later error
	refused := map[continuo.Payer]bool{} // each is asked for once
	query := index.UnembeddedQuery{Model: r.Embedder.Name(), Limit: listed}
	for {
		waiting, err := r.Store.Unembedded(ctx, query)
		if err != nil {
			return fmt.Errorf("embed: %w", err)
		}
		for _, one := range waiting {
			query.After = one.Conversation.ID
			owner := continuo.Payer{ProjectID: one.Conversation.ProjectID, UserID: one.Conversation.UserID}
			if refused[owner] {
				continue
			}
			if err := r.conversation(continuo.WithPayer(ctx, owner), one); err != nil {
				err = fmt.Errorf("embed conversation %s: %w", one.Conversation.ID, err)
				if !errors.Is(err, ErrLater) {
					return err
				}
				refused[owner], later = true, cmp.Or(later, err)
			}
		}
		if len(waiting) < listed {
			return later
		}
	}
}

// conversation makes the vectors of one conversation. Another runner that was faster, or a change of the conversation, ends
// it: a later run goes on.
func (r Runner) conversation(ctx context.Context, one index.Unembedded) error {
	batch := index.VectorBatch{ConversationID: one.Conversation.ID, Model: r.Embedder.Name(), After: one.Embedded, Through: one.Embedded}
	var seqs []int64
	var texts []string
	for entry, err := range r.Log.ReadShared(ctx, one.Conversation, continuo.Range{From: one.Embedded + 1, To: one.Indexed}) {
		if err != nil {
			return passing(ctx, err)
		}
		if text := textOf(entry); text != "" {
			seqs, texts = append(seqs, entry.Seq), append(texts, text)
		}
		batch.Through = entry.Seq
		if len(texts) < atOnce && batch.Through-batch.After < scanned && entry.Seq < one.Indexed {
			continue
		}
		if err := r.commit(ctx, &batch, seqs, texts); err != nil {
			return passing(ctx, err)
		}
		batch.After, batch.Vectors, seqs, texts = batch.Through, nil, nil, nil
	}
	return nil
}

func (r Runner) commit(ctx context.Context, batch *index.VectorBatch, seqs []int64, texts []string) error {
	if len(texts) > 0 {
		made, err := r.embed(ctx, texts)
		if err != nil {
			return err
		}
		for i, values := range made {
			if len(values) > index.MaxDimensions {
				return fmt.Errorf("%w: a vector has %d dimensions, at most %d are stored", continuo.ErrInvalid, len(values), index.MaxDimensions)
			}
			if bytes := quantize(values); bytes != nil {
				batch.Vectors = append(batch.Vectors, index.Vector{Seq: seqs[i], Values: bytes})
			}
		}
	}
	return r.Store.Embed(ctx, *batch)
}

// embed makes vectors. Texts that the embedder refuses get none: if it refuses several, each is tried by itself.
func (r Runner) embed(ctx context.Context, texts []string) ([][]float32, error) {
	made, _, err := r.Embedder.Embed(ctx, texts)
	if !errors.Is(err, ErrRefused) {
		return made, err
	}
	made = make([][]float32, len(texts))
	for i := range texts {
		if len(texts) == 1 {
			break
		}
		one, err := r.embed(ctx, texts[i:i+1])
		if err != nil {
			return nil, err
		}
		made[i] = one[0]
	}
	return made, nil
}

// passing returns nil for the errors of a conversation that was changed while it was read.
func passing(ctx context.Context, err error) error {
	var faster *continuo.ConflictError
	if ctx.Err() == nil && (errors.As(err, &faster) || errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrArchived)) {
		return nil
	}
	return err
}

// textOf is what a vector is made of: the text of a message that a person or a model wrote; "" for none.
func textOf(entry *continuo.Entry) string {
	if entry.Hidden || entry.Redacted != nil || entry.Role != continuo.User && entry.Role != continuo.Assistant {
		return ""
	}
	return head(strings.TrimSpace(strings.Join(fulltext.TextsOf(entry), "\n")))
}

// head is the beginning of a text, of at most maxChars characters.
func head(text string) string {
	left := maxChars
	for i := range text {
		if left == 0 {
			return text[:i]
		}
		left--
	}
	return text
}
