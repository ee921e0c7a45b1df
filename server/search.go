package server

import (
	"errors"
	"fmt"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
)

// searchPage is a list of matches, with a note whether the index was complete.
type searchPage struct {
	list[index.Item]
	Incomplete bool `json:"incomplete"`
	Waiting    int  `json:"waiting,omitempty"`
}

func (s *server) search(w http.ResponseWriter, r *http.Request) error {
	request, err := s.searchRequest(r)
	if err != nil {
		return err
	}
	result, err := s.engine.Conversations.Search(r.Context(), scopeOf(r), request)
	switch {
	case errors.Is(err, fulltext.ErrQuery):
		return at("q", err)
	case errors.Is(err, index.ErrCursor):
		return at("cursor", err)
	case errors.Is(err, continuo.ErrArchived):
		return at("conversation", err)
	case err != nil:
		return err
	}
	page := searchPage{Incomplete: result.Incomplete, Waiting: result.Waiting}
	page.Data = append([]index.Item{}, result.Items...)
	if page.HasMore = result.NextCursor != ""; page.HasMore {
		page.NextCursor = &result.NextCursor
	}
	return writeJSON(w, http.StatusOK, page)
}

// searchRequest reads the query of a search.
func (s *server) searchRequest(r *http.Request) (request index.Request, err error) {
	q, err := parseQuery(r, "q", "conversation", "user_id", metadataParams, "kind", "role", "from", "to", "limit", "cursor")
	if err != nil {
		return request, err
	}
	switch {
	case !q.has("q"):
		return request, refuse("q", "q is missing: give the words to look for")
	case q.has("cursor") && q.text("cursor") == "":
		return request, refuse("cursor", "the cursor is empty: leave it out for the first page")
	}
	request = index.Request{Query: q.text("q"), Kinds: index.KindsOf(q.text("kind")), Role: continuo.Role(q.text("role")), Cursor: q.text("cursor")}
	if request.UserID, err = q.user(scopeOf(r)); err != nil {
		return request, err
	}
	if request.Labels, err = q.labels(); err != nil {
		return request, err
	}
	if q.has("conversation") && len(request.Labels) > 0 {
		return request, refuse("conversation", "metadata chooses among conversations: leave it out where one is named")
	}
	if q.has("kind") {
		if err := oneOf("kind", q.text("kind"), index.KindNames()...); err != nil {
			return request, err
		}
	}
	if q.has("role") {
		if err := oneOf("role", request.Role, continuo.User, continuo.Assistant, continuo.Tool, continuo.System); err != nil {
			return request, err
		}
	}
	for _, seq := range []struct {
		name string
		to   *int64
	}{{"from", &request.From}, {"to", &request.To}} {
		if *seq.to, err = q.whole(seq.name, 1, maxSeq, 0); err != nil {
			return request, err
		}
		if *seq.to > 0 && !q.has("conversation") {
			return request, refuse(seq.name, "%s is a seq of one conversation: name it with conversation", seq.name)
		}
	}
	if request.To > 0 && request.To < request.From {
		return request, refuse("to", "from is %d and to is %d: from must not come after to", request.From, request.To)
	}
	limit, err := q.whole("limit", 1, index.MaxLimit, index.DefaultLimit)
	if err != nil {
		return request, err
	}
	request.Limit = int(limit)
	if q.has("conversation") {
		request.Conversation, err = s.searchedConversation(r, q.text("conversation"))
	}
	return request, err
}

// searchedConversation finds the conversation that a search names by its id or key.
func (s *server) searchedConversation(r *http.Request, id string) (*continuo.Conversation, error) {
	if !engine.KeyPattern.MatchString(id) {
		return nil, at("conversation", fmt.Errorf("conversation %q: %w", bounded(id), continuo.ErrNotFound))
	}
	conversation, err := s.engine.Log.Find(r.Context(), scopeOf(r), id)
	if err != nil {
		return nil, at("conversation", err)
	}
	return &conversation, nil
}
