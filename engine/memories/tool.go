package memories

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
	memorytool "github.com/continuo-log/continuo/tool/memory"
)

// ForModels is the memory as models reach it by tools: of the user whose conversation it is.
type ForModels struct{ *Memories }

var _ memorytool.Memory = ForModels{}

// toolName is who adds the facts of the tools.
const toolName = "tool memory.remember"

// ownerOf is the memory that belongs to a conversation.
func ownerOf(conversation continuo.Conversation) (continuo.Scope, Owner) {
	return continuo.Scope{ProjectID: conversation.ProjectID}, Owner{UserID: conversation.UserID}
}

// Recall is part of memorytool.Memory.
func (m ForModels) Recall(ctx context.Context, conversation continuo.Conversation, query string) ([]memorytool.Fact, error) {
	scope, owner := ownerOf(conversation)
	found, err := m.Memories.Recall(ctx, scope, owner, query, DefaultRecalled)
	if err != nil {
		return nil, err
	}
	var facts []memorytool.Fact
	for i := range found {
		facts = append(facts, shownToModel(&found[i]))
	}
	return facts, nil
}

func shownToModel(fact *Fact) memorytool.Fact {
	shown := memorytool.Fact{
		ID: fact.ID, Kind: string(fact.Kind), Text: fact.Text, Said: fact.ValidFrom.UTC().Format(time.DateOnly), Contested: len(fact.Contradicts) > 0,
	}
	if !fact.ValidTo.IsZero() {
		shown.Until = memory.LastDay(fact.ValidTo)
	}
	return shown
}

// maxQuoted bounds how many entries are searched for a quote.
const maxQuoted = 500

// Remember is part of memorytool.Memory. The newest message of the user with the quote is the source. A text that has words which
// the message has not is replaced by the quote.
func (m ForModels) Remember(ctx context.Context, conversation continuo.Conversation, statement memorytool.Statement) (memorytool.Fact, error) {
	read := 0
	for entry, err := range m.log.Entries(ctx, conversation.ID, continuo.Range{Backward: true}) {
		if err != nil {
			return memorytool.Fact{}, err
		}
		if read++; read > maxQuoted {
			break
		}
		if entry.NoMemory || entry.Role != continuo.User || entry.Hidden || entry.Redacted != nil || entry.ConversationID != conversation.ID || !continuo.Quotes(&entry, statement.Quote) {
			continue
		}
		if !memory.Supports(entry.Content.String(), statement.Text) {
			statement.Text = statement.Quote
		}
		scope, owner := ownerOf(conversation)
		fact, err := m.Memories.Remember(ctx, scope, Statement{
			Owner: owner, Text: statement.Text, Kind: continuo.FactKind(statement.Kind), By: toolName, ValidFrom: entry.CreatedAt,
			Sources: []Source{{conversation.ID, entry.Seq, statement.Quote}},
		})
		return shownToModel(&fact), err
	}
	return memorytool.Fact{}, fmt.Errorf("%w: no message of the user has the words of the quote", continuo.ErrInvalid)
}

// Forget is part of memorytool.Memory.
func (m ForModels) Forget(ctx context.Context, conversation continuo.Conversation, id int64) error {
	scope, owner := ownerOf(conversation)
	return m.Memories.Forget(ctx, scope, owner, id, false)
}
