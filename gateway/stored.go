package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/turn"
)

// Chat completions with store: true can be listed and retrieved. Their answers are in the log as those of every other
// request; a record of each says where. The records are entries of one conversation of the scope, found by a prefix of the
// completion's id: the newest record of an id counts.

// completionRecord says where a stored chat completion is in the log.
type completionRecord struct {
	ID           string          `json:"id"`
	Conversation string          `json:"conversation"`
	Seq          int64           `json:"seq"` // of the answer
	Model        string          `json:"model"`
	Asked        string          `json:"asked"` // the name of the model in the request
	Created      int64           `json:"created"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	First        int64           `json:"first,omitempty"` // seq of the completion's first record; 0 in that one
	Deleted      bool            `json:"deleted,omitempty"`

	seq int64 // of the record
}

// completions are the stored chat completions of a scope.
type completions struct {
	*Gateway
	scope continuo.Scope
}

// index is the conversation with the records.
func (c *completions) index(ctx context.Context) (continuo.Conversation, error) {
	return c.engine.Conversations.Records(ctx, c.scope, "#chat-completions/"+c.scope.UserID, "Stored chat completions")
}

// hashOfCompletion is the prefix under which the records of a completion are found.
func hashOfCompletion(index, id string) (hash continuo.PrefixHash) {
	sum := sha256.Sum256([]byte("chat completion\x00" + index + "\x00" + id))
	copy(hash[:], sum[:])
	return hash
}

// put appends a record. A key makes it once only.
func (c *completions) put(ctx context.Context, index continuo.Conversation, record *completionRecord, key string) error {
	_, err := c.engine.Conversations.AppendRecord(ctx, index, rawjson.MustMarshal(record), continuo.AppendOptions{Key: key, Identity: key, Prefixes: func(stored []continuo.Entry) []continuo.Prefix {
		return []continuo.Prefix{{Seq: stored[0].Seq, Hash: hashOfCompletion(index.ID, record.ID)}}
	}})
	return err
}

// newest finds the newest records of completions, by their ids.
func (c *completions) newest(ctx context.Context, index continuo.Conversation, ids ...string) (map[string]*completionRecord, error) {
	query := continuo.PrefixQuery{ProjectID: c.scope.ProjectID, Limit: 1}
	for _, id := range ids {
		query.Hashes = append(query.Hashes, hashOfCompletion(index.ID, id))
	}
	found, _, err := c.prefixes.Prefixes(ctx, query)
	if err != nil {
		return nil, err
	}
	records := map[string]*completionRecord{}
	for _, prefix := range found {
		for record, err := range c.records(ctx, index, continuo.Range{From: prefix.Seq, To: prefix.Seq}) {
			if err != nil {
				return nil, err
			}
			records[record.ID] = record
		}
	}
	return records, nil
}

// records reads the records of a range.
func (c *completions) records(ctx context.Context, index continuo.Conversation, within continuo.Range) iter.Seq2[*completionRecord, error] {
	return func(yield func(*completionRecord, error) bool) {
		for entry, err := range c.engine.Conversations.Read(ctx, index, within) {
			if err != nil {
				yield(nil, err)
				return
			}
			record := &completionRecord{seq: entry.Seq}
			if entry.PartType != continuo.PartRecord || json.Unmarshal([]byte(entry.Content.String()), record) != nil {
				continue
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// storesCompletion reports whether a request asks for its completion to be stored.
func storesCompletion(e endpoint, asked *askedRequest) bool {
	_, isChat := e.(chatCompletions)
	return isChat && string(asked.Fields.Get("store")) == "true"
}

// storing notes a completion that is to be stored.
type storing struct {
	*completions
	asked  *askedRequest
	record completionRecord
}

// newStoring checks the request of a completion that is to be stored.
func (g *Gateway) newStoring(scope continuo.Scope, asked *askedRequest) (*storing, error) {
	metadata := asked.Fields.Get("metadata")
	return &storing{&completions{g, scope}, asked, completionRecord{Asked: asked.Model, Metadata: metadata}}, checkMetadata(metadata)
}

// events adds to the events of a turn that its completion is recorded before the client has its end.
func (s *storing) events(ctx context.Context, turnID string, events iter.Seq2[turn.Event, error]) iter.Seq2[turn.Event, error] {
	s.record.ID, s.record.Model = chatID(turnID), s.asked.Model
	return func(yield func(turn.Event, error) bool) {
		var held []turn.Event
		read := false // the upstream's own id
		for event, err := range events {
			if event.Wire != "" && !read {
				read = s.readID(event.Wire)
			}
			if event.Wire != "" && err == nil && (!s.asked.Stream || (chatCompletions{}).ends(event.Wire)) && event.Kind != turn.Finished {
				held = append(held, event)
				continue
			}
			if err == nil && event.Kind == turn.Finished {
				if failed := s.keep(context.WithoutCancel(ctx), turnID, event.Entry); failed != nil {
					s.options.Logger.ErrorContext(ctx, "completion_not_stored", "id", s.record.ID, "error", failed.Error())
				}
			}
			for _, before := range held {
				if !yield(before, nil) {
					return
				}
			}
			if held = nil; !yield(event, err) {
				return
			}
		}
		for _, before := range held {
			if !yield(before, nil) {
				return
			}
		}
	}
}

// readID reads the id and the model of an upstream's answer from its first bytes.
func (s *storing) readID(wire string) (read bool) {
	for data := range completionData(wire) {
		var head struct {
			ID      string             `json:"id"`
			Model   string             `json:"model"`
			Created openaichat.Seconds `json:"created"`
		}
		if json.Unmarshal(data, &head) == nil && head.ID != "" {
			s.record.ID, s.record.Model, s.record.Created = head.ID, cmp.Or(head.Model, s.record.Model), int64(head.Created)
			return true
		}
	}
	return false
}

// keep appends the record of a completion.
func (s *storing) keep(ctx context.Context, turnID string, answer *continuo.Entry) error {
	index, err := s.index(ctx)
	if err != nil {
		return err
	}
	s.record.Conversation, s.record.Seq, s.record.Created = answer.ConversationID, answer.Seq, cmp.Or(s.record.Created, answer.CreatedAt.Unix())
	return s.put(ctx, index, &s.record, "stored "+turnID)
}

// find finds a stored completion; continuo.ErrNotFound.
func (c *completions) find(ctx context.Context, id string) (continuo.Conversation, *completionRecord, error) {
	index, err := c.index(ctx)
	if err != nil {
		return index, nil, err
	}
	found, err := c.newest(ctx, index, id)
	if record := found[id]; err == nil && (record == nil || record.Deleted) {
		err = continuo.ErrNotFound
	}
	return index, found[id], err
}

// change appends a newer record of a completion.
func (c *completions) change(ctx context.Context, index continuo.Conversation, record *completionRecord) error {
	record.First = cmp.Or(record.First, record.seq)
	return c.put(ctx, index, record, "")
}

// list finds the completions of a list, one more than its limit where there is.
func (c *completions) list(ctx context.Context, q completionQuery) (found []*completionRecord, err error) {
	index, err := c.index(ctx)
	if err != nil {
		return nil, err
	}
	within := continuo.Range{Backward: q.backward}
	if q.after != "" {
		_, after, err := c.find(ctx, q.after)
		if err != nil {
			return nil, err
		}
		at := cmp.Or(after.First, after.seq)
		within.From = at + 1
		if q.backward {
			within.From, within.To = 0, at-1
		}
		if q.backward && at == 1 || within.From > index.LastSeq {
			return nil, nil
		}
	}
	var page []*completionRecord
	for record, err := range c.records(ctx, index, within) {
		if err != nil {
			return nil, err
		}
		if record.First != 0 {
			continue // of a completion that comes at its first record
		}
		if page = append(page, record); len(page) <= q.limit {
			continue
		}
		if found, err = c.matching(ctx, index, found, page, q); err != nil || len(found) > q.limit {
			return found, err
		}
		page = nil
	}
	return c.matching(ctx, index, found, page, q)
}

// matching adds to the completions found those of some first records that there still are, and that a query selects.
func (c *completions) matching(ctx context.Context, index continuo.Conversation, found, page []*completionRecord, q completionQuery) ([]*completionRecord, error) {
	var ids []string
	for _, record := range page {
		ids = append(ids, record.ID)
	}
	if len(ids) == 0 {
		return found, nil
	}
	newest, err := c.newest(ctx, index, slices.Compact(ids)...)
	if err != nil {
		return nil, err
	}
	for _, first := range page {
		record := newest[first.ID]
		if record == nil || record.Deleted || cmp.Or(record.First, record.seq) != first.seq || !q.selects(record) {
			continue
		}
		found = append(found, record)
	}
	return found, nil
}

// answerOf reads the answer of a stored completion; continuo.ErrNotFound where its conversation was deleted.
func (c *completions) answerOf(ctx context.Context, record *completionRecord) (continuo.Conversation, *continuo.Entry, error) {
	conversation, err := c.engine.Conversations.Find(ctx, c.scope, record.Conversation)
	if err != nil {
		return conversation, nil, err
	}
	for entry, err := range c.engine.Conversations.Read(ctx, conversation, continuo.Range{From: record.Seq, To: record.Seq}) {
		return conversation, &entry, err
	}
	return conversation, nil, fmt.Errorf("answer of %s: %w", record.ID, continuo.ErrNotFound)
}
