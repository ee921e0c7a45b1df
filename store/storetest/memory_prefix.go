package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

func checkMemoryPrefixes(batch continuo.Batch) error {
	for _, p := range batch.Prefixes {
		if p.ConversationID != batch.ConversationID {
			return fmt.Errorf("%w: a prefix of conversation %q", continuo.ErrInvalid, p.ConversationID)
		}
	}
	return nil
}

// putPrefix adds a prefix, or replaces the one with its seq and hash.
func (c *memoryConversation) putPrefix(p continuo.Prefix) {
	c.prefixes = slices.DeleteFunc(c.prefixes, func(old continuo.Prefix) bool { return old.Seq == p.Seq && old.Hash == p.Hash })
	c.prefixes = append(c.prefixes, p)
}

// dropPrefixes removes the prefixes that have one of some entries of a conversation, in its forks too.
func (m *memory) dropPrefixes(conversationID string, entries []continuo.Entry) {
	if len(entries) == 0 {
		return
	}
	first := slices.MinFunc(entries, func(a, b continuo.Entry) int { return int(a.Seq - b.Seq) }).Seq
	for _, c := range m.conversations {
		inherits := slices.ContainsFunc(c.Lineage, func(s continuo.Segment) bool { return s.ConversationID == conversationID && s.Through >= first })
		if c.ID == conversationID || inherits {
			c.prefixes = slices.DeleteFunc(c.prefixes, func(p continuo.Prefix) bool { return inherits || p.Seq >= first })
		}
	}
}

func (m *memory) Prefixes(ctx context.Context, query continuo.PrefixQuery) (found []continuo.Prefix, of []continuo.Conversation, err error) {
	if query.Limit < 1 {
		return nil, nil, fmt.Errorf("find prefixes: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, nil, err
	}
	defer m.mu.Unlock()
	for _, hash := range query.Hashes {
		var same []continuo.Prefix
		for _, c := range m.conversations {
			for _, p := range c.prefixes {
				if !c.deleted && c.ArchivedAt.IsZero() && c.ProjectID == query.ProjectID && p.Hash == hash && (query.Session == 0 || p.Session == query.Session) {
					same = append(same, p)
				}
			}
		}
		slices.SortFunc(same, func(a, b continuo.Prefix) int {
			if a.ConversationID != b.ConversationID {
				return strings.Compare(b.ConversationID, a.ConversationID)
			}
			return int(b.Seq - a.Seq)
		})
		found = append(found, same[:min(len(same), query.Limit)]...)
	}
	for _, c := range m.conversations {
		if slices.ContainsFunc(found, func(p continuo.Prefix) bool { return p.ConversationID == c.ID }) {
			of = append(of, c.Conversation)
		}
	}
	return found, of, nil
}
