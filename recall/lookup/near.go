package lookup

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall/vector"
)

// maxCompared is of how many conversations, the newest, entries are compared by their vectors.
const maxCompared = 200

// near finds entries by their vectors, if the request asks for it.
func (f Finder) near(ctx context.Context, request *Request) (vector.Near, error) {
	if f.Vectors == nil || !request.Vectors {
		return nil, nil
	}
	searched := request.Conversation
	searched.LastSeq = min(searched.LastSeq, request.To)
	conversations := []continuo.Conversation{searched}
	if request.Scope != Conversation && (request.Scope == Project || searched.UserID != "") {
		query := continuo.ConversationQuery{ProjectID: searched.ProjectID, Limit: maxCompared}
		if request.Scope == User {
			query.UserID = searched.UserID
		}
		others, err := f.Log.Conversations(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range others {
			if others[i].ID != searched.ID {
				conversations = append(conversations, others[i])
			}
		}
	}
	return f.Vectors.Find(ctx, request.Text, conversations), ctx.Err()
}
