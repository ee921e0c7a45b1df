package continuo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// KindMemory is the kind of a conversation whose entries are what is known of a user, or of a project: see [Fact].
const KindMemory Kind = "memory"

// PartFact is the PartType of an entry with a Fact.
const PartFact = "fact"

// ProjectMemoryKey is the key of a project's memory: what concerns all of its users. Clients cannot give such a key.
const ProjectMemoryKey = "memory/project"

// MemoryKey is the key of a user's memory within a project; "" is the memory of the conversations without a user.
func MemoryKey(userID string) string {
	sum := sha256.Sum256([]byte(userID))
	return "memory/user/" + hex.EncodeToString(sum[:16])
}

// FactKind classifies facts.
type FactKind string

// The kinds of facts.
const (
	FactIdentity    FactKind = "identity"
	FactPreference  FactKind = "preference"
	FactInstruction FactKind = "instruction"
	FactDecision    FactKind = "decision"
	FactEvent       FactKind = "event"
	FactRelation    FactKind = "relation"
	FactOther       FactKind = "other"
)

// FactKinds are all kinds of facts.
var FactKinds = []FactKind{FactIdentity, FactPreference, FactInstruction, FactDecision, FactEvent, FactRelation, FactOther}

// Fact is what an entry of a memory conversation states; the entry's content is the text. A fact has sources, each with
// a quote that occurs verbatim in it, or is a user entry without sources, which is its own source: a person (or
// a program for it) stated or imported it. The log refuses any other fact, and redacts a fact when a source of it is redacted or
// deleted, or becomes another user's.
type Fact struct {
	Kind    FactKind `json:"kind"`
	Subject string   `json:"subject,omitempty"` // whom or what it is about; "user" for the user
	// Attribute names what the fact says of its subject, such as "home". Of two facts with the same subject and
	// attribute, the newer one supersedes the older one. Empty where several facts can hold at once.
	Attribute string    `json:"attribute,omitempty"`
	ValidFrom time.Time `json:"valid_from,omitzero"`
	// ValidTo is when its time ends, if it was stated with an end; zero for no end.
	ValidTo time.Time `json:"valid_to,omitzero"`
	// Sources are entries of conversations of the memory's user; those of a project's memory are of the project.
	Sources    []FactSource `json:"sources,omitempty"`
	Confidence float64      `json:"confidence"`           // 0 to 1
	Supersedes []int64      `json:"supersedes,omitempty"` // seqs of facts of the same memory that it replaces
	// Derived says that the fact is a pattern in at least three sources of at least two conversations.
	Derived bool `json:"derived,omitempty"`
	// By names who extracted or stated it: "rules", "person", a model, or a tool.
	By string `json:"by,omitempty"`
	// Imported says where a fact was known before, whose sources are not all in this store; nil for every other fact.
	Imported *FactOrigin `json:"imported,omitempty"`
}

// FactOrigin is where a fact was known before it was imported. Its quotes were not compared with their sources.
type FactOrigin struct {
	Sources   []FactSource `json:"sources"`    // that were not in this store, or not readable
	CreatedAt time.Time    `json:"created_at"` // when it was recorded there
}

// HasSource reports whether one of the fact's sources, also of those elsewhere, is the one that is looked for.
func (f *Fact) HasSource(is func(FactSource) bool) bool {
	return slices.ContainsFunc(f.Sources, is) || f.Imported != nil && slices.ContainsFunc(f.Imported.Sources, is)
}

// allSources are its sources and those elsewhere.
func (f *Fact) allSources() []FactSource {
	if f.Imported == nil {
		return f.Sources
	}
	return slices.Concat(f.Sources, f.Imported.Sources)
}

// FactSource is an entry from which a fact was taken.
type FactSource struct {
	ConversationID string `json:"conversation"` // in which the entry was written: not a fork that inherits it
	Seq            int64  `json:"seq"`
	Quote          string `json:"quote,omitempty"` // words of the entry; empty where the fact was redacted
}

// RuleFact is broken by a fact without a source that has its quote.
const RuleFact Rule = "fact_without_source"

// The bounds of a fact.
const (
	MaxFactChars   = 2000
	MaxFactSources = 64
	// A derived fact needs so many sources, over so many conversations.
	MinDerivedSources       = 3
	MinDerivedConversations = 2
)

// Memory finds the memory of a user of a project, or, with the key ProjectMemoryKey, of the project; ErrNotFound where
// there is none yet.
func (l *Log) Memory(ctx context.Context, projectID, key string) (Conversation, error) {
	found, err := l.store.ConversationByKey(ctx, projectID, key)
	if err != nil {
		return Conversation{}, fmt.Errorf("memory: %w", err)
	}
	return found, nil
}

// checkFacts refuses facts that break the rules. It does nothing for entries without facts.
func (l *Log) checkFacts(ctx context.Context, conversationID string, entries []Entry) error {
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Fact != nil }) {
		return nil
	}
	memory, err := l.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	for i := range entries {
		if entries[i].Fact == nil {
			continue
		}
		err := checkFact(memory, &entries[i])
		if err == nil {
			err = l.checkSources(ctx, memory, entries[i].Fact)
		}
		if err != nil {
			return atIndex(err, i)
		}
	}
	return nil
}

// checkFact checks a fact without reading its sources.
func checkFact(memory Conversation, e *Entry) error {
	fact, text, sources := e.Fact, e.Content.String(), e.Fact.allSources()
	conversations := map[string]bool{}
	for _, source := range sources {
		conversations[source.ConversationID] = true
	}
	switch {
	case memory.Kind != KindMemory:
		return broken(RuleFact, "only a conversation of the kind memory may have facts")
	case !slices.Contains(FactKinds, fact.Kind):
		return broken(RuleFact, "the kind of a fact is one of %v, not %q", FactKinds, fact.Kind)
	case strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > MaxFactChars:
		return broken(RuleFact, "a fact has 1 to %d characters", MaxFactChars)
	case !utf8.ValidString(fact.Subject) || !utf8.ValidString(fact.Attribute) || !utf8.ValidString(fact.By):
		return broken(RuleInvalidUTF8, "text is not valid UTF-8")
	case !(fact.Confidence >= 0 && fact.Confidence <= 1): // refuses NaN too
		return broken(RuleFact, "the confidence of a fact is between 0 and 1")
	case len(fact.Sources) == 0 && e.Role != User:
		return broken(RuleFact, "a fact that no person states needs a source with a quote")
	case len(sources) > MaxFactSources:
		return broken(RuleFact, "a fact has at most %d sources", MaxFactSources)
	case fact.Imported != nil && (len(fact.Imported.Sources) == 0 || slices.ContainsFunc(fact.Imported.Sources, isQuoteless)):
		return broken(RuleFact, "each source of an imported fact has a quote")
	case !fact.ValidTo.IsZero() && !fact.ValidTo.After(fact.ValidFrom):
		return broken(RuleFact, "a fact ends after it begins")
	case fact.Derived && (len(sources) < MinDerivedSources || len(conversations) < MinDerivedConversations):
		return broken(RuleFact, "a derived fact needs %d sources over %d conversations", MinDerivedSources, MinDerivedConversations)
	}
	return nil
}

// isQuoteless reports whether a source has no words that could be in it.
func isQuoteless(source FactSource) bool {
	return strings.TrimSpace(source.Quote) == "" || !utf8.ValidString(source.Quote) || !utf8.ValidString(source.ConversationID)
}

// checkSources reads the sources of a fact and refuses it where a quote is not in its source.
func (l *Log) checkSources(ctx context.Context, memory Conversation, fact *Fact) error {
	for _, source := range fact.Sources {
		if err := l.checkSource(ctx, memory, source); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) checkSource(ctx context.Context, memory Conversation, source FactSource) error {
	name := fmt.Sprintf("the source %s %d", source.ConversationID, source.Seq)
	conversation, err := l.Conversation(ctx, source.ConversationID)
	switch {
	case errors.Is(err, ErrNotFound):
		return broken(RuleFact, "%s does not exist", name)
	case err != nil:
		return err
	case !remembers(memory, conversation):
		return broken(RuleFact, "%s is of another project or user", name)
	case source.Seq < 1 || source.Seq > conversation.LastSeq || segmentOf(&conversation, source.Seq).id != conversation.ID:
		return broken(RuleFact, "%s was not written in this conversation", name)
	}
	found, err := l.store.Entries(ctx, conversation.ID, EntryQuery{From: source.Seq, To: source.Seq, Limit: 1})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return broken(RuleFact, "%s does not exist", name)
	}
	return checkQuote(name, source.Quote, &found[0])
}

// checkQuote refuses a quote that does not occur verbatim in an entry.
func checkQuote(name, quote string, entry *Entry) error {
	switch {
	case entry.Redacted != nil:
		return broken(RuleFact, "%s is redacted", name)
	case isQuoteless(FactSource{Quote: quote}):
		return broken(RuleFact, "%s has no quote", name)
	case !Quotes(entry, quote):
		return broken(RuleFact, "%s does not have the words of its quote", name)
	}
	return nil
}

// Quotes reports whether a quote occurs verbatim in the text of an entry: it neither begins nor ends inside of a
// word.
func Quotes(entry *Entry, quote string) bool {
	text := entry.Content.String()
	for from := 0; quote != ""; {
		at := strings.Index(text[from:], quote)
		if at < 0 {
			return false
		}
		begin, end := from+at, from+at+len(quote)
		if !insideWord(text, begin) && !insideWord(text, end) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[begin:])
		from = begin + size
	}
	return false
}

// insideWord reports whether an offset is between two ASCII letters or digits. Other scripts write words without spaces.
func insideWord(text string, at int) bool {
	return at > 0 && at < len(text) && isASCIIWord(text[at-1]) && isASCIIWord(text[at])
}

func isASCIIWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// remembers reports whether a memory may have facts from a conversation.
func remembers(memory, conversation Conversation) bool {
	return memory.ProjectID == conversation.ProjectID && (memory.Key == ProjectMemoryKey || memory.UserID == conversation.UserID)
}

// settleFacts runs after an append. It removes facts and recalls whose source was redacted, deleted or moved while they were
// appended, and facts from an entry that the append deletes. A recall that it redacts is redacted in stored, too. Known is how the
// conversation was before, nil where that is not known.
func (l *Log) settleFacts(ctx context.Context, conversationID string, stored []Entry, known *Snapshot) error {
	ctx = context.WithoutCancel(ctx)
	for i := range stored {
		e := &stored[i]
		if seq, _, ok := e.Deletion(); ok {
			if err := l.retractDeleted(ctx, conversationID, seq); err != nil {
				return err
			}
		}
		if e.HoldsRecall() && e.Redacted == nil {
			if err := l.settleRecall(ctx, e, known); err != nil {
				return err
			}
		}
		if e.Profile != nil && e.Redacted == nil {
			if err := l.settleProfile(ctx, e); err != nil {
				return err
			}
		}
		if e.Fact == nil || len(e.Fact.Sources) == 0 || e.Redacted != nil {
			continue
		}
		memory, err := l.Conversation(ctx, conversationID)
		if err != nil {
			return err
		}
		if err := l.checkSources(ctx, memory, e.Fact); err != nil {
			return errors.Join(err, l.redactStored(ctx, []Entry{*e}, RedactRequest{Reason: retracted}))
		}
	}
	return nil
}

// retracted is the reason of redactions of facts that lost a source.
const retracted = "the source was removed"

// retractDeleted redacts the facts from an entry that a client deleted, and what other conversations recalled of it.
func (l *Log) retractDeleted(ctx context.Context, conversationID string, seq int64) error {
	conversation, err := l.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	owner := segmentOf(&conversation, seq).id
	shows := func(item RecallItem) bool { return item.ConversationID == owner && item.Seq == seq }
	if err := l.redactQuotes(ctx, []string{owner}, shows); err != nil {
		return err
	}
	return l.retract(ctx, conversation, []string{owner}, func(source FactSource) bool {
		return source.ConversationID == owner && source.Seq == seq
	})
}

// factsFrom finds the facts, not redacted, that have a source: in the memory of the user of each conversation and in the
// project's.
func (l *Log) factsFrom(ctx context.Context, shown Conversation, owners []string, has func(FactSource) bool) ([]Entry, error) {
	keys := []string{ProjectMemoryKey, MemoryKey(shown.UserID)}
	for _, id := range owners {
		if id == shown.ID {
			continue
		}
		owner, err := l.Conversation(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue // its facts went with it
		}
		if err != nil {
			return nil, err
		}
		if key := MemoryKey(owner.UserID); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	var facts []Entry
	for _, key := range keys {
		memory, err := l.Memory(ctx, shown.ProjectID, key)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := l.factsIn(ctx, memory, has)
		if err != nil {
			return nil, err
		}
		facts = append(facts, found...)
	}
	return facts, nil
}

// factsIn finds the facts of one memory that have a source, and the profiles that are made of them.
func (l *Log) factsIn(ctx context.Context, memory Conversation, has func(FactSource) bool) ([]Entry, error) {
	var facts []Entry
	for entry, err := range l.Read(ctx, memory, Range{}) {
		if err != nil {
			return nil, err
		}
		if entry.Redacted == nil && entry.Fact != nil && entry.Fact.HasSource(has) {
			facts = append(facts, entry)
		}
	}
	return facts, nil
}

// retract redacts the facts that have a source.
func (l *Log) retract(ctx context.Context, conversation Conversation, owners []string, has func(FactSource) bool) error {
	facts, err := l.factsFrom(ctx, conversation, owners, has)
	if err != nil || len(facts) == 0 {
		return err
	}
	return l.redactStored(ctx, facts, RedactRequest{Reason: retracted})
}

// retractAll redacts the facts that were taken from a conversation, in the memories of its user and of the project, and the
// recalls in other conversations that show entries of it.
func (l *Log) retractAll(ctx context.Context, conversation Conversation) error {
	if err := l.redactQuotes(ctx, []string{conversation.ID}, func(item RecallItem) bool { return item.ConversationID == conversation.ID }); err != nil {
		return err
	}
	return l.retract(ctx, conversation, nil, func(source FactSource) bool { return source.ConversationID == conversation.ID })
}

// redactStored redacts entries of memories, and the profiles that are made of them.
func (l *Log) redactStored(ctx context.Context, facts []Entry, request RedactRequest) error {
	with, err := l.withProfiles(ctx, facts)
	if err == nil {
		with, err = l.withQuotes(ctx, with)
	}
	if err != nil {
		return err
	}
	redacted := make([]Entry, len(with))
	for i := range with {
		redacted[i] = l.redact(&with[i], request)
	}
	if _, err := l.storeRedacted(ctx, redacted); err != nil {
		return err
	}
	if err := l.redactQuotes(ctx, owners(facts), showsAny(facts)); err != nil { // appended meanwhile
		return err
	}
	return l.redactProfiles(ctx, facts, request)
}

// owners lists the conversations in which entries were written.
func owners(entries []Entry) (ids []string) {
	for i := range entries {
		if id := entries[i].ConversationID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func containsEntry(entries []Entry, e *Entry) bool {
	return slices.ContainsFunc(entries, func(other Entry) bool { return other.ID == e.ID })
}

// withFacts adds the facts whose source is one of the entries, and the profiles that are made of facts, before them.
func (l *Log) withFacts(ctx context.Context, conversation Conversation, said []Entry) ([]Entry, error) {
	if len(said) == 0 {
		return said, nil
	}
	facts, err := l.factsFrom(ctx, conversation, owners(said), func(source FactSource) bool {
		return slices.ContainsFunc(said, func(e Entry) bool { return e.ConversationID == source.ConversationID && e.Seq == source.Seq })
	})
	if err != nil {
		return nil, err
	}
	facts = slices.DeleteFunc(facts, func(e Entry) bool { return containsEntry(said, &e) })
	return l.withProfiles(ctx, append(facts, said...))
}

// redactedFact keeps where a fact came from, so that it is not extracted again, and nothing of what it said.
func redactedFact(fact *Fact) *Fact {
	if fact == nil {
		return nil
	}
	kept := &Fact{Kind: fact.Kind, Derived: fact.Derived, Sources: withoutQuotes(fact.Sources)}
	if fact.Imported != nil {
		kept.Imported = &FactOrigin{Sources: withoutQuotes(fact.Imported.Sources), CreatedAt: fact.Imported.CreatedAt}
	}
	return kept
}

func withoutQuotes(sources []FactSource) (kept []FactSource) {
	for _, source := range sources {
		kept = append(kept, FactSource{ConversationID: source.ConversationID, Seq: source.Seq})
	}
	return kept
}
