package engine

import (
	"context"
	"errors"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/interchange"
)

// Imported says what became of one document.
type Imported struct {
	Conversation continuo.Conversation `json:"conversation"`
	// Existed says that the document had been imported before: nothing was added.
	Existed bool                 `json:"existed"`
	Entries int                  `json:"entries"`
	Repairs []interchange.Repair `json:"repairs"`
	Source  string               `json:"source,omitempty"`
	Format  string               `json:"format,omitempty"`
}

// Import adds a document to a project as a conversation, whole or not at all. A document that was
// imported before is found by its key, and nothing is added.
func (e *Engine) Import(ctx context.Context, projectID string, document interchange.Document) (Imported, error) {
	conversation := document.Conversation
	conversation.ProjectID = projectID
	if conversation.Title == "" {
		conversation.Title = firstWords(document.Entries)
	}
	result := Imported{Entries: len(document.Entries), Repairs: append([]interchange.Repair{}, document.Repairs...), Source: document.Source, Format: document.Format}
	if conversation.Key != "" {
		found, err := e.Log.Find(ctx, projectID, conversation.Key)
		if err == nil {
			result.Conversation, result.Existed = found, true
			return result, nil
		}
		if !errors.Is(err, continuo.ErrNotFound) {
			return Imported{}, err
		}
	}
	created, err := e.Log.Import(ctx, conversation, document.Entries)
	if errors.Is(err, continuo.ErrExists) { // somebody else imported it just now
		found, err := e.Log.Find(ctx, projectID, conversation.Key)
		result.Conversation, result.Existed = found, true
		return result, err
	}
	result.Conversation = created
	return result, err
}

// firstWords makes a title of the first user entry.
func firstWords(entries []continuo.Entry) string {
	for _, entry := range entries {
		if title := titleOf(entry.Content); entry.Role == continuo.User && title != "" {
			return title
		}
	}
	return ""
}
