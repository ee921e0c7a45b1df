package api

import (
	"context"
	"errors"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
)

func (s *Service) searchOperations() []Operation {
	return []Operation{
		define(Operation{
			ID: "search", Method: "GET", Path: "/api/search", Tag: "conversations", Summary: "search the conversations",
			Answers: answers(ok("A page of matches.")),
		}, s.Search),
	}
}

// SearchQuery says what to search for, and where.
type SearchQuery struct {
	// The words to look for, or a question as it is asked; not all of the words need to occur. Words `"in quotes"` must occur
	// side by side; `-word` must not occur; `word*` must occur, and also finds longer words.
	Query *string `query:"q" arg:"query" required:"true" doc:"minLength=1,maxLength=1000"`
	// The id or key of the one conversation to search; without it those of the project are.
	Conversation *string `query:"conversation"`
	UserFilter
	MetadataFilter
	// Which conversations of the project are searched: those of users, tasks, the work of agents on tasks, clients' calls
	// beside their conversations, or all
	// of them. With `conversation` it does not count.
	Kind string `query:"kind" enum:"user,task,agent,side,memory,all" default:"user"`
	// Only entries of this role, and no titles.
	Role continuo.Role `query:"role" enum:"user,assistant,tool,system"`
	// Only entries from this `seq` on; only with `conversation`.
	From int64 `query:"from" minimum:"1"`
	// Only entries up to this `seq`; only with `conversation`.
	To int64 `query:"to" minimum:"1"`
	// How many to give at most.
	Limit int `query:"limit" minimum:"1" maximum:"200" default:"20"`
	Cursor
}

// Check refuses parameters that cannot be combined.
func (in *SearchQuery) Check() error {
	switch {
	case in.Query == nil:
		return Refuse("q", "q is missing: give the words to look for")
	case in.Cursor.Cursor != nil && *in.Cursor.Cursor == "":
		return Refuse("cursor", "the cursor is empty: leave it out for the first page")
	case in.Conversation != nil && len(in.Labels) > 0:
		return Refuse("conversation", "metadata chooses among conversations: leave it out where one is named")
	}
	for _, seq := range []struct {
		name string
		at   int64
	}{{"from", in.From}, {"to", in.To}} {
		if seq.at > 0 && in.Conversation == nil {
			return Refuse(seq.name, "%s is a seq of one conversation: name it with conversation", seq.name)
		}
	}
	if in.To > 0 && in.To < in.From {
		return Refuse("to", "from is %d and to is %d: from must not come after to", in.From, in.To)
	}
	return nil
}

// SearchPage is a list of matches, with a note whether the index was complete.
type SearchPage struct {
	List[index.Item]
	// The index did not have all of the project in time, so that there may be more matches. Ask again a little later. It is
	// never so with `conversation`.
	Incomplete bool `json:"incomplete"`
	// How many conversations the index did not have then, counted up to 1 000.
	Waiting int `json:"waiting,omitempty"`
}

// Search finds entries and titles by their words.
//
// Finds entries and titles by their words: what was said, the names and arguments of tool calls, and what tools did and
// returned (of outputs that are kept beside the log, the preview). What hidden entries and the models' thinking say is not
// found.
//
// An entry needs some of the words, in any form; the matches are ranked by the probability that they are needed, `score` in
// millionths: rare words, names, dates and what stands around an entry count. Of a query of up to three words the entries
// with all of them come first, and every word of four letters or more also finds longer ones. To a longer query also
// entries without its words are found, beside those that have them. Words `"in quotes"` must occur side by side; `-word`
// leaves out entries with it; `word*` must occur. Case and accents make no difference. Chinese, Japanese, Thai and other
// scripts without spaces are searched by their characters.
//
// Some 240 entries with the rarest words are ranked together; `next_cursor` continues with the rest of them, then with
// further entries that have all of the words, the newest first, whose `score` is 0. A page may have few matches, or none,
// although `has_more` is true. An entry that was just appended is found. One of which a client of the gateway deleted an
// item is found as well, with `deleted`: the log has it, and no model is shown it. With `conversation`, also what a fork began with is found; without, each entry is found once, in the conversation
// that it was written to.
func (s *Service) Search(ctx context.Context, scope continuo.Scope, in SearchQuery) (SearchPage, error) {
	request := index.Request{
		Query: *in.Query, Kinds: index.KindsOf(in.Kind), Role: in.Role, Labels: in.Labels, From: in.From, To: in.To,
		Limit: in.Limit, Cursor: valueOf(in.Cursor.Cursor),
	}
	var page SearchPage
	var err error
	if request.UserID, err = in.user(scope); err != nil {
		return page, err
	}
	if in.Conversation != nil {
		conversation, err := s.Find(ctx, scope, *in.Conversation)
		if err != nil {
			return page, At("conversation", err)
		}
		request.Conversation = &conversation
	}
	result, err := s.Engine.Conversations.Search(ctx, scope, request)
	switch {
	case errors.Is(err, fulltext.ErrQuery):
		return page, At("q", err)
	case errors.Is(err, index.ErrCursor):
		return page, At("cursor", err)
	case errors.Is(err, continuo.ErrArchived):
		return page, At("conversation", err)
	case err != nil:
		return page, err
	}
	return SearchPageOf(result), nil
}

// SearchPageOf makes the page of a result.
func SearchPageOf(result index.Result) SearchPage {
	page := SearchPage{Incomplete: result.Incomplete, Waiting: result.Waiting}
	page.Data = append([]index.Item{}, result.Items...)
	if page.HasMore = result.NextCursor != ""; page.HasMore {
		page.NextCursor = &result.NextCursor
	}
	return page
}
