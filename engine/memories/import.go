package memories

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/memory"
)

// ImportedFacts says what an import did.
type ImportedFacts struct {
	// How many facts were added.
	Added int `json:"added"`
	// How many facts the memory had already.
	Known int `json:"known"`
	// Facts that were not added.
	LeftOut []LeftOut `json:"left_out"`
}

// LeftOut is a fact that an import did not add.
type LeftOut struct {
	// The fact's id in the file.
	ID int64 `json:"id"`
	// Where it begins in the file, from 1.
	Line int `json:"line"`
	// Why: the fact, or a message that it was taken from, was removed here, or the message is another user's.
	Reason string `json:"reason" enum:"removed,other_user"`
}

// The reasons of LeftOut.
const (
	leftRemoved   = "removed"
	leftOtherUser = "other_user"
)

// importTries bounds how often an import begins again because the memory has changed meanwhile.
const importTries = 10

// Import adds the facts of a file that a memory does not have, all or none, with their times and the order in which they
// supersede each other. A source that is here is linked, and must have the words of its quote; a fact without such a source is
// a statement of the caller, and is marked as imported. What was removed here is not added again. The memory of
// another owner is taken with anyUser only. It fails with a *FileError where a fact of the file cannot
// be true.
func (m *Memories) Import(ctx context.Context, scope continuo.Scope, owner Owner, file *File, anyUser bool) (ImportedFacts, error) {
	_, user, err := owner.key(scope)
	if err == nil {
		err = owner.checkWritable(scope)
	}
	if err == nil && !anyUser {
		err = file.checkOwner(user, owner.Project)
	}
	if err != nil {
		return ImportedFacts{}, err
	}
	for try := 1; ; try++ {
		done, err := m.importOnce(ctx, scope, owner, file)
		var conflict *continuo.ConflictError
		if !errors.As(err, &conflict) || try == importTries {
			return done, err
		}
	}
}

// importOnce fails with a *continuo.ConflictError where the memory has changed meanwhile.
func (m *Memories) importOnce(ctx context.Context, scope continuo.Scope, owner Owner, file *File) (ImportedFacts, error) {
	conversation, err := m.open(ctx, scope, owner)
	if err != nil {
		return ImportedFacts{}, err
	}
	entries, err := m.entries(ctx, conversation)
	if err != nil {
		return ImportedFacts{}, err
	}
	t := newTaking(m.log, conversation, entries)
	for i := range file.Facts {
		if err := t.take(ctx, file, &file.Facts[i]); err != nil {
			return ImportedFacts{}, err
		}
	}
	audit.About(ctx, conversation.ID)
	if len(t.added) == 0 {
		return t.done, nil
	}
	_, err = m.log.Append(ctx, conversation.ID, t.added, continuo.AppendOptions{ExpectSeq: t.first})
	if rule := (*continuo.RuleError)(nil); errors.As(err, &rule) {
		return ImportedFacts{}, fmt.Errorf("%w: %s", continuo.ErrInvalid, rule.Message)
	}
	if err != nil {
		return ImportedFacts{}, err
	}
	return t.done, m.updateProfile(ctx, conversation)
}

// taking compares the facts of a file with those of a memory.
type taking struct {
	log     *continuo.Log
	memory  continuo.Conversation
	known   map[string][]memory.Known // by what they say
	removed map[bool]map[source]bool  // for patterns, and for other facts
	seqs    map[int64]int64           // of facts here, by their ids in the file
	first   int64                     // the seq of the first fact that is added
	added   []continuo.Entry
	done    ImportedFacts
}

func newTaking(log *continuo.Log, conversation continuo.Conversation, entries []continuo.Entry) *taking {
	t := &taking{
		log: log, memory: conversation, known: map[string][]memory.Known{}, seqs: map[int64]int64{}, first: 1,
		removed: map[bool]map[source]bool{true: removedSources(entries, true), false: removedSources(entries, false)},
		done:    ImportedFacts{LeftOut: []LeftOut{}},
	}
	if len(entries) > 0 {
		t.first = entries[len(entries)-1].Seq + 1
	}
	for _, k := range memory.Fold(entries) {
		t.add(k)
	}
	return t
}

func (t *taking) add(k memory.Known) {
	key := memory.Key(k.Subject, k.Text)
	t.known[key] = append(t.known[key], k)
}

// take adds a fact of the file, or says why not.
func (t *taking) take(ctx context.Context, file *File, fact *FileFact) error {
	if seq := t.find(fact); seq > 0 {
		t.seqs[fact.ID] = seq
		t.done.Known++
		return nil
	}
	here, elsewhere, reason, err := t.sources(ctx, fact)
	if err != nil {
		return err
	}
	if reason != "" {
		t.done.LeftOut = append(t.done.LeftOut, LeftOut{fact.ID, fact.Line, reason})
		return nil
	}
	entry := t.entry(file, fact, here, elsewhere)
	if end := entry.Fact.ValidTo; !end.IsZero() && !end.After(fact.ValidFrom) {
		return &FileError{fact.Line, "the fact ends before it begins"}
	}
	t.seqs[fact.ID] = t.first + int64(len(t.added))
	t.add(memory.Known{Seq: t.seqs[fact.ID], Text: fact.Text, Fact: *entry.Fact, SupersededBy: fact.SupersededBy})
	t.added = append(t.added, entry)
	t.done.Added++
	return nil
}

// find returns the seq of the fact that the memory has already; 0 for none. It says the same, and was taken from the same
// entry or stated at the same time, or is not older than one that still holds.
func (t *taking) find(fact *FileFact) int64 {
	from := map[source]bool{}
	for _, one := range fact.allSources() {
		from[source{one.ConversationID, one.Seq}] = true
	}
	for _, k := range t.known[memory.Key(fact.Subject, fact.Text)] {
		isSource := k.HasSource(func(s continuo.FactSource) bool { return from[source{s.ConversationID, s.Seq}] })
		isNewer := fact.SupersededBy == 0 && (k.Holds(fact.ValidFrom) || !k.Said().Before(fact.ValidFrom))
		if isSource || from[source{t.memory.ID, k.Seq}] || k.Said().Equal(fact.ValidFrom) || isNewer {
			return k.Seq
		}
	}
	return 0
}

// sources tells the sources that are here from those elsewhere. The reason says why the fact is left out.
func (t *taking) sources(ctx context.Context, fact *FileFact) (here, elsewhere []continuo.FactSource, reason string, err error) {
	for _, one := range fact.allSources() {
		if t.removed[fact.Derived][source{one.ConversationID, one.Seq}] {
			return nil, nil, leftRemoved, nil
		}
		entry, reason, err := t.said(ctx, one)
		switch {
		case err != nil || reason != "":
			return nil, nil, reason, err
		case entry == nil:
			elsewhere = append(elsewhere, continuo.FactSource(one))
		case !continuo.Quotes(entry, one.Quote):
			return nil, nil, "", &FileError{fact.Line, fmt.Sprintf("entry %d of %s does not have the words of its quote", one.Seq, one.ConversationID)}
		default:
			here = append(here, continuo.FactSource(one))
		}
	}
	return here, elsewhere, "", nil
}

// said returns the entry that a source names; nil where it is not here. Other projects are elsewhere.
func (t *taking) said(ctx context.Context, one Source) (entry *continuo.Entry, reason string, err error) {
	conversation, err := t.log.Conversation(ctx, one.ConversationID)
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case conversation.ProjectID != t.memory.ProjectID:
		return nil, "", nil
	case conversation.UserID != t.memory.UserID && t.memory.Key != continuo.ProjectMemoryKey:
		return nil, leftOtherUser, nil
	case !conversation.ArchivedAt.IsZero():
		return nil, "", nil
	}
	for found, err := range t.log.Read(ctx, conversation, continuo.Range{From: one.Seq, To: one.Seq}) {
		switch {
		case err != nil:
			return nil, "", err
		case found.Redacted != nil:
			return nil, leftRemoved, nil
		case found.ConversationID == conversation.ID:
			return &found, "", nil
		}
	}
	return nil, "", nil
}

// entry is a fact of the file as the memory has it.
func (t *taking) entry(file *File, from *FileFact, here, elsewhere []continuo.FactSource) continuo.Entry {
	fact := &continuo.Fact{
		Kind: from.Kind, Subject: from.Subject, Attribute: from.Attribute, ValidFrom: from.ValidFrom, ValidTo: file.end(from), Sources: here,
		Confidence: from.Confidence, Derived: from.Derived, By: from.By,
	}
	for _, id := range from.Supersedes {
		if seq := t.seqs[id]; seq > 0 {
			fact.Supersedes = append(fact.Supersedes, seq)
		}
	}
	entry := continuo.Entry{Role: continuo.System, PartType: continuo.PartFact, Content: continuo.Text(from.Text), Fact: fact}
	if len(elsewhere) > 0 {
		fact.Imported = &continuo.FactOrigin{Sources: elsewhere, CreatedAt: from.CreatedAt}
	}
	if len(here) == 0 {
		entry.Role = continuo.User
	}
	return entry
}
