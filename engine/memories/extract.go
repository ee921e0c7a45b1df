package memories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
)

// extractor finds facts in entries.
type extractor interface {
	// name names its marks and the keys of its facts. In a conversation, the mark is the seq through which the entries
	// were read; in a memory the time, in microseconds, up to which changes of the user's conversations were read.
	name() string
	// extract returns what it finds, by the seqs of the entries; what was known before helps to find it.
	extract(ctx context.Context, entries []continuo.Entry) (map[int64][]memory.Candidate, error)
}

// byRules extracts by the rules of package memory.
type byRules struct{}

func (byRules) name() string { return memory.ByRules }

func (byRules) extract(_ context.Context, entries []continuo.Entry) (map[int64][]memory.Candidate, error) {
	found := map[int64][]memory.Candidate{}
	for i := range entries {
		if candidates := memory.Extract(&entries[i]); len(candidates) > 0 {
			found[entries[i].Seq] = candidates
		}
	}
	return found, nil
}

const (
	// scanSlack is how far behind a mark conversations are looked at again, because the clocks of processes differ.
	scanSlack = 2 * time.Minute
	// scanPast is how far back the first scan of a new memory goes: what was said before is read by Derive only.
	scanPast = 24 * time.Hour
	scanPage = 100
	// A chunk is what an extractor is given at once.
	chunkEntries = 100
	chunkChars   = 30_000
)

func markOf(by extractor) string { return "memory " + by.name() }

// scan reads what is new in the conversations of a memory's user that have changed since the last scan, or in all of
// them.
func (m *Memories) scan(ctx context.Context, conversation continuo.Conversation, by extractor, all bool) error {
	mark, err := m.log.Mark(ctx, conversation.ID, markOf(by))
	since := time.UnixMicro(mark.Seq).Add(-scanSlack)
	if errors.Is(err, continuo.ErrNotFound) {
		since, err = conversation.CreatedAt.Add(-scanPast), nil
	}
	if err != nil {
		return err
	}
	if all {
		since = time.Time{}
	}
	changed, err := m.changed(ctx, conversation, since)
	if err != nil || len(changed) == 0 {
		return err
	}
	s := &scanning{m: m, memory: conversation, by: by}
	for i := range slices.Backward(changed) { // the oldest first
		if err := s.read(ctx, changed[i]); err != nil {
			return fmt.Errorf("read conversation %s for memory: %w", changed[i].ID, err)
		}
	}
	if err := m.updateProfile(ctx, conversation); err != nil { // also after a source was removed
		return err
	}
	_, err = m.log.AdvanceMark(ctx, conversation.ID, markOf(by), continuo.Mark{Seq: max(changed[0].UpdatedAt.UnixMicro(), 0)})
	return err
}

// changed lists the conversations of a memory's user that have changed since a time, the newest change first.
func (m *Memories) changed(ctx context.Context, conversation continuo.Conversation, since time.Time) (changed []continuo.Conversation, err error) {
	query := continuo.ConversationQuery{ProjectID: conversation.ProjectID, UserID: conversation.UserID, Kind: continuo.KindUser, Limit: scanPage}
	for {
		page, err := m.log.Conversations(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.UpdatedAt.Before(since) {
				return changed, nil
			}
			if c.UserID == conversation.UserID { // a query for no user finds those of all users
				changed = append(changed, c)
			}
		}
		if len(page) < scanPage {
			return changed, nil
		}
		last := page[len(page)-1]
		query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
}

// scanning reads conversations for one memory.
type scanning struct {
	m      *Memories
	memory continuo.Conversation
	by     extractor

	loaded  bool
	known   []memory.Known
	removed map[source]bool // of facts that were forgotten: nothing is taken from them again
}

// source names an entry.
type source struct {
	conversation string
	seq          int64
}

// read reads what is new in one conversation. Entries that it inherited are read where they were written.
func (s *scanning) read(ctx context.Context, c continuo.Conversation) error {
	log := s.m.log
	mark, err := log.Mark(ctx, c.ID, markOf(s.by))
	if err != nil && !errors.Is(err, continuo.ErrNotFound) {
		return err
	}
	from := max(mark.Seq, c.ForkSeq) + 1
	if from > c.LastSeq {
		return nil
	}
	skipped, err := s.skippedTurn(ctx, c, from)
	if err != nil {
		return err
	}
	for from <= c.LastSeq {
		chunk, last, err := s.chunk(ctx, c, from, skipped)
		if err != nil {
			return err
		}
		if err := s.take(ctx, c, chunk); err != nil {
			return err
		}
		if _, err := log.AdvanceMark(ctx, c.ID, markOf(s.by), continuo.Mark{Seq: last}); err != nil {
			return err
		}
		from = last + 1
	}
	return nil
}

// skippedTurn returns the turn that an earlier entry began and of which nothing may be remembered, if the first new entry
// belongs to one.
func (s *scanning) skippedTurn(ctx context.Context, c continuo.Conversation, from int64) (map[string]bool, error) {
	skipped, turn := map[string]bool{}, ""
	for entry, err := range s.m.log.Read(ctx, c, continuo.Range{To: from, Backward: true}) {
		switch {
		case err != nil:
			return nil, err
		case entry.Seq == from:
			turn = entry.TurnID
		case entry.NoMemory && entry.TurnID == turn:
			skipped[turn] = true
		}
		if turn == "" || entry.TurnID != turn {
			break
		}
	}
	return skipped, nil
}

// chunk reads entries from a seq, without those of turns of which nothing may be remembered, and returns the seq of the
// last one that it has read.
func (s *scanning) chunk(ctx context.Context, c continuo.Conversation, from int64, skipped map[string]bool) (chunk []continuo.Entry, last int64, err error) {
	chars := 0
	for entry, err := range s.m.log.Read(ctx, c, continuo.Range{From: from, To: c.LastSeq, Keeps: true}) {
		if err != nil {
			return nil, 0, err
		}
		last = entry.Seq
		if entry.NoMemory && entry.TurnID != "" {
			skipped[entry.TurnID] = true
		}
		if entry.NoMemory || entry.Hidden || entry.Redacted != nil || skipped[entry.TurnID] {
			continue
		}
		chunk = append(chunk, entry)
		if chars += entry.Chars; len(chunk) == chunkEntries || chars > chunkChars {
			break
		}
	}
	return chunk, max(last, from), nil
}

// take appends the facts of a chunk to the memory.
func (s *scanning) take(ctx context.Context, c continuo.Conversation, chunk []continuo.Entry) error {
	if len(chunk) == 0 {
		return nil
	}
	found, err := s.by.extract(ctx, chunk)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	for i := range chunk {
		entry := &chunk[i]
		if candidates := found[entry.Seq]; len(candidates) > 0 && !s.removed[source{c.ID, entry.Seq}] {
			if err := s.add(ctx, entry, candidates); err != nil {
				return err
			}
		}
	}
	return nil
}

// load reads the memory once.
func (s *scanning) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	entries, err := s.m.entries(ctx, s.memory)
	if err != nil {
		return err
	}
	s.loaded, s.known, s.removed = true, memory.Fold(entries), removedSources(entries, true)
	return nil
}

// removedSources are the places that facts of a memory were taken from which were removed, with patterns or without; one that
// was stated is in its own place.
func removedSources(entries []continuo.Entry, patterns bool) map[source]bool {
	removed := map[source]bool{}
	for i := range entries {
		e := &entries[i]
		if e.Fact == nil || e.Redacted == nil || e.Fact.Derived && !patterns {
			continue
		}
		removed[source{e.ConversationID, e.Seq}] = true
		e.Fact.HasSource(func(from continuo.FactSource) bool {
			removed[source{from.ConversationID, from.Seq}] = true
			return false
		})
	}
	return removed
}

// add appends the facts that were found in an entry, once, without those that are known already.
func (s *scanning) add(ctx context.Context, entry *continuo.Entry, candidates []memory.Candidate) error {
	var facts []continuo.Entry
	for _, candidate := range candidates {
		if memory.Same(s.known, candidate.Subject, candidate.Text, entry.CreatedAt) == nil {
			facts = append(facts, s.fact(entry, candidate))
		}
	}
	if len(facts) == 0 {
		return nil
	}
	key := fmt.Sprintf("fact %s %s %d", s.by.name(), entry.ConversationID, entry.Seq) // the spaces: clients cannot give such a key
	stored, err := s.m.log.Append(ctx, s.memory.ID, facts, continuo.AppendOptions{Key: key, Identity: key})
	var rule *continuo.RuleError
	if errors.As(err, &rule) && rule.Rule == continuo.RuleFact {
		s.m.options.Logger.InfoContext(ctx, "fact_refused", "conversation_id", entry.ConversationID, "seq", entry.Seq, "by", s.by.name(), "error", rule.Error())
		return nil // the source was removed meanwhile
	}
	if err != nil {
		return err
	}
	s.known = append(s.known, memory.Fold(stored)...)
	return nil
}

// fact is a fact of an entry.
func (s *scanning) fact(entry *continuo.Entry, candidate memory.Candidate) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, PartType: continuo.PartFact, Content: continuo.Text(candidate.Text),
		Fact: &continuo.Fact{
			Kind: candidate.Kind, Subject: candidate.Subject, Attribute: candidate.Attribute, ValidFrom: entry.CreatedAt, ValidTo: candidate.ValidTo,
			Confidence: candidate.Confidence, Supersedes: memory.Updated(s.known, candidate, entry.CreatedAt), By: s.by.name(),
			Sources: []continuo.FactSource{{ConversationID: entry.ConversationID, Seq: entry.Seq, Quote: candidate.Quote}},
		},
	}
}

// skip marks all conversations of a user as read, so that nothing of their past is extracted later.
func (m *Memories) skip(ctx context.Context, scope continuo.Scope, owner Owner) error {
	_, user, err := owner.key(scope)
	if err != nil || owner.Project {
		return err
	}
	changed, err := m.changed(ctx, continuo.Conversation{ProjectID: scope.ProjectID, UserID: user}, time.Time{})
	if err != nil {
		return err
	}
	extractors := []extractor{byRules{}}
	if m.options.Extractor != "" {
		extractors = append(extractors, byModel{model: m.options.Extractor})
	}
	for _, c := range changed {
		for _, by := range extractors {
			if _, err := m.log.AdvanceMark(ctx, c.ID, markOf(by), continuo.Mark{Seq: c.LastSeq}); err != nil {
				return err
			}
		}
	}
	return nil
}
