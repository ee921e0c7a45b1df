package memories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/turn"
)

// Memories keeps the memories of users and projects.
type Memories struct {
	log     *continuo.Log
	catalog *catalog.Catalog
	life    *lifecycle.Lifecycle
	keeper  *turn.Keeper
	options Options
	pending lifecycle.Latest[continuo.Scope, struct{}] // users whose facts are extracted in this process
	held    heldFacts
}

// Options configures Memories.
type Options struct {
	// Enabled says whether facts are extracted from conversations. Facts can be listed, added, corrected and forgotten
	// either way.
	Enabled bool
	// Extractor names the model that extracts facts besides the rules; "": the rules alone.
	Extractor string
	// DeriveEvery is how long after a derivation of patterns a turn of the user begins the next one in the background. Default
	// 0: Derive alone derives.
	DeriveEvery time.Duration
	// Logger and Requests are the engine's.
	Logger   *slog.Logger
	Requests charged.Requests
}

// New makes Memories.
func New(log *continuo.Log, catalog *catalog.Catalog, life *lifecycle.Lifecycle, keeper *turn.Keeper, options Options) *Memories {
	return &Memories{log: log, catalog: catalog, life: life, keeper: keeper, options: options}
}

// Owner names a memory: a user's, or the project's.
type Owner struct {
	UserID  string // "": the scope's user; without one, the memory of the conversations without a user
	Project bool   // the memory of the project, which all of its users share
}

// Fact is a fact as callers see it.
type Fact struct {
	// ID names the fact within its memory.
	ID           int64             `json:"id"`
	Text         string            `json:"text"`
	Kind         continuo.FactKind `json:"kind" enum:"identity,preference,instruction,decision,event,relation,other"`
	Subject      string            `json:"subject"`
	Attribute    string            `json:"attribute,omitempty"`
	ValidFrom    time.Time         `json:"valid_from"`
	ValidTo      time.Time         `json:"valid_to,omitzero"`
	Sources      []Source          `json:"sources"`
	Confidence   float64           `json:"confidence"`
	Supersedes   []int64           `json:"supersedes,omitempty"`
	SupersededBy int64             `json:"superseded_by,omitempty"`
	// Contradicts are ids of facts that cannot hold together with it and that no time orders.
	Contradicts []int64 `json:"contradicts,omitempty"`
	Derived     bool    `json:"derived,omitempty"`
	// By says who found or stated it: rules, person, counts, a model or a tool.
	By        string    `json:"by"`
	CreatedAt time.Time `json:"created_at"`
	// Imported says where the fact was known before it was imported, if its sources are not all here.
	Imported *Origin `json:"imported,omitempty"`
}

// Origin is where an imported fact was known before.
type Origin struct {
	// Sources are not in this store, so that their quotes cannot be compared with them.
	Sources []Source `json:"sources"`
	// When the fact was recorded there.
	CreatedAt time.Time `json:"created_at"`
}

// Source is an entry from which a fact was taken.
type Source struct {
	ConversationID string `json:"conversation_id"`
	Seq            int64  `json:"seq"`
	Quote          string `json:"quote"`
}

// Query selects facts of a memory.
type Query struct {
	Owner
	Kind continuo.FactKind // "": any
	All  bool              // also those that others have superseded, and those whose time is over
	// Before is the id before which the page begins; 0 for the newest. Limit 0: no limit.
	Before int64
	Limit  int
}

// ErrDisabled says that the settings do not allow facts to be extracted.
var ErrDisabled = fmt.Errorf("%w: memory.enabled is off", continuo.ErrInvalid)

// ErrEndsBefore says that a statement ends before it begins.
var ErrEndsBefore = fmt.Errorf("%w: the fact ends before it begins", continuo.ErrInvalid)

// ErrText says that a statement has no text, or one that is too long.
var ErrText = fmt.Errorf("%w: a fact has 1 to %d characters", continuo.ErrInvalid, continuo.MaxFactChars)

// find finds the memory of an owner within a scope; ErrNotFound where there is none yet.
func (m *Memories) find(ctx context.Context, scope continuo.Scope, owner Owner) (continuo.Conversation, error) {
	key, _, err := owner.key(scope)
	if err != nil {
		return continuo.Conversation{}, err
	}
	return m.log.Memory(ctx, scope.ProjectID, key)
}

// key returns the key of the owner's memory, and its user.
func (o Owner) key(scope continuo.Scope) (key, user string, err error) {
	if o.Project {
		if o.UserID != "" {
			return "", "", fmt.Errorf("%w: a memory is a user's or the project's, not both", continuo.ErrInvalid)
		}
		return continuo.ProjectMemoryKey, "", nil
	}
	if user, err = scope.Owner(o.UserID); err != nil {
		return "", "", err
	}
	return continuo.MemoryKey(user), user, nil
}

// checkWritable refuses a caller that is bound to a user to change what all users of the project share.
func (o Owner) checkWritable(scope continuo.Scope) error {
	if o.Project && scope.UserID != "" {
		return fmt.Errorf("the memory of the project: %w: the caller is bound to a user", continuo.ErrOtherUser)
	}
	return nil
}

// open finds the memory of an owner, or creates it.
func (m *Memories) open(ctx context.Context, scope continuo.Scope, owner Owner) (continuo.Conversation, error) {
	key, user, err := owner.key(scope)
	if err != nil {
		return continuo.Conversation{}, err
	}
	found, err := m.log.Memory(ctx, scope.ProjectID, key)
	if !errors.Is(err, continuo.ErrNotFound) {
		return found, err
	}
	created, err := m.log.Create(ctx, continuo.Conversation{
		ProjectID: scope.ProjectID, UserID: user, Kind: continuo.KindMemory, Key: key, Title: "Memory", ActiveMode: continuo.ModeChat,
	})
	if errors.Is(err, continuo.ErrExists) { // another process was faster
		return m.log.Memory(ctx, scope.ProjectID, key)
	}
	return created, err
}

// known reads the facts of a memory; none where there is no memory yet.
func (m *Memories) known(ctx context.Context, scope continuo.Scope, owner Owner) (continuo.Conversation, []memory.Known, error) {
	found, err := m.find(ctx, scope, owner)
	if errors.Is(err, continuo.ErrNotFound) {
		return continuo.Conversation{}, nil, nil
	}
	if err != nil {
		return continuo.Conversation{}, nil, err
	}
	entries, err := m.entries(ctx, found)
	return found, memory.Fold(entries), err
}

func (m *Memories) entries(ctx context.Context, conversation continuo.Conversation) (entries []continuo.Entry, err error) {
	for entry, err := range m.log.Entries(ctx, conversation.ID, continuo.Range{Keeps: true}) {
		if err != nil {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// List lists the facts of a memory, the newest first, and those whose extraction was left behind.
func (m *Memories) List(ctx context.Context, scope continuo.Scope, query Query) ([]Fact, error) {
	if query.Kind != "" && !slices.Contains(continuo.FactKinds, query.Kind) {
		return nil, fmt.Errorf("kind %q: %w: it is one of %v", query.Kind, continuo.ErrInvalid, continuo.FactKinds)
	}
	if err := m.catchUp(ctx, scope, query.Owner); err != nil {
		return nil, err
	}
	conversation, known, err := m.known(ctx, scope, query.Owner)
	if err != nil {
		return nil, err
	}
	audit.About(ctx, conversation.ID)
	facts, now := []Fact{}, m.log.Now()
	for _, k := range slices.Backward(known) {
		switch {
		case query.Kind != "" && k.Kind != query.Kind, !query.All && !k.Holds(now), query.Before > 0 && k.Seq >= query.Before:
			continue
		case query.Limit > 0 && len(facts) == query.Limit:
			return facts, nil
		}
		facts = append(facts, factOf(conversation, &k))
	}
	return facts, nil
}

// factOf is a fact as callers see it.
func factOf(conversation continuo.Conversation, k *memory.Known) Fact {
	fact := Fact{
		ID: k.Seq, Text: k.Text, Kind: k.Kind, Subject: cmp.Or(k.Subject, memory.UserSubject), Attribute: k.Attribute,
		ValidFrom: k.ValidFrom, ValidTo: k.ValidTo, Confidence: k.Confidence, Supersedes: k.Supersedes, SupersededBy: k.SupersededBy,
		Contradicts: k.Contradicts, Derived: k.Derived, By: k.By, CreatedAt: k.At, Sources: []Source{},
	}
	if fact.ValidFrom.IsZero() {
		fact.ValidFrom = k.At
	}
	for _, source := range k.Sources {
		fact.Sources = append(fact.Sources, Source(source))
	}
	if len(k.Sources) == 0 { // a person stated it here
		fact.Sources = append(fact.Sources, Source{conversation.ID, k.Seq, k.Text})
	}
	if k.Imported != nil {
		fact.Imported = &Origin{CreatedAt: k.Imported.CreatedAt}
		for _, source := range k.Imported.Sources {
			fact.Imported.Sources = append(fact.Imported.Sources, Source(source))
		}
	}
	return fact
}

// Shown is a fact, with the facts that it replaced or that replaced it.
type Shown struct {
	Fact
	// History has the other facts of the same subject and attribute, and those that supersede each other, the oldest first.
	History []Fact `json:"history"`
}

// Get shows one fact; ErrNotFound.
func (m *Memories) Get(ctx context.Context, scope continuo.Scope, owner Owner, id int64) (Shown, error) {
	conversation, known, err := m.known(ctx, scope, owner)
	if err != nil {
		return Shown{}, err
	}
	found := memory.Find(known, id)
	if found == nil {
		return Shown{}, fmt.Errorf("fact %d: %w", id, continuo.ErrNotFound)
	}
	audit.About(ctx, conversation.ID)
	shown := Shown{Fact: factOf(conversation, found), History: []Fact{}}
	for i := range known {
		if k := &known[i]; k.Seq != id && isRelated(k, found) {
			shown.History = append(shown.History, factOf(conversation, k))
		}
	}
	return shown, nil
}

func isRelated(a, b *memory.Known) bool {
	sameAttribute := a.Attribute != "" && a.Attribute == b.Attribute && strings.EqualFold(a.Subject, b.Subject)
	return sameAttribute || a.SupersededBy == b.Seq || b.SupersededBy == a.Seq ||
		slices.Contains(a.Supersedes, b.Seq) || slices.Contains(b.Supersedes, a.Seq) || slices.Contains(a.Contradicts, b.Seq)
}

// Statement is a fact that a person, or a program for it, states.
type Statement struct {
	Owner
	Text string
	// Kind is found by the rules where it is empty. Subject is the user where it is empty.
	Kind               continuo.FactKind
	Subject, Attribute string
	ValidFrom          time.Time // default: now
	// ValidTo is when it ends. Default: what the rules find in the text, such as "until Friday"; else it has no end.
	ValidTo time.Time
	// Sources are what supports it; each quote must stand in its source. Default: the statement is its own source.
	Sources []Source
	By      string // default: a person
	Key     string // the idempotency key; "" for none
}

// Remember adds a fact.
func (m *Memories) Remember(ctx context.Context, scope continuo.Scope, statement Statement) (Fact, error) {
	return m.state(ctx, scope, statement, nil)
}

// Correct adds a fact that supersedes another one; ErrNotFound. Kind, subject and attribute are by default the other's.
func (m *Memories) Correct(ctx context.Context, scope continuo.Scope, id int64, statement Statement) (Fact, error) {
	_, known, err := m.known(ctx, scope, statement.Owner)
	if err != nil {
		return Fact{}, err
	}
	old := memory.Find(known, id)
	if old == nil {
		return Fact{}, fmt.Errorf("fact %d: %w", id, continuo.ErrNotFound)
	}
	statement.Kind = cmp.Or(statement.Kind, old.Kind)
	statement.Subject, statement.Attribute = cmp.Or(statement.Subject, old.Subject), cmp.Or(statement.Attribute, old.Attribute)
	return m.state(ctx, scope, statement, []int64{id})
}

// state appends a statement.
func (m *Memories) state(ctx context.Context, scope continuo.Scope, statement Statement, supersedes []int64) (Fact, error) {
	if err := statement.checkWritable(scope); err != nil {
		return Fact{}, err
	}
	statement.Text = strings.TrimSpace(statement.Text)
	if statement.Text == "" || utf8.RuneCountInString(statement.Text) > continuo.MaxFactChars {
		return Fact{}, ErrText
	}
	said := cmp.Or(statement.ValidFrom, m.log.Now())
	if !statement.ValidTo.IsZero() && !statement.ValidTo.After(said) {
		return Fact{}, fmt.Errorf("%w: %s is not after %s", ErrEndsBefore, statement.ValidTo.Format(time.RFC3339), said.Format(time.RFC3339))
	}
	entry := continuo.Entry{Role: continuo.User, PartType: continuo.PartFact, Content: continuo.Text(statement.Text)}
	entry.Fact = statement.fact(&entry, said)
	fact, text := entry.Fact, entry.Content.String()
	fact.Supersedes = supersedes
	for _, source := range statement.Sources {
		fact.Sources = append(fact.Sources, continuo.FactSource(source))
	}
	if len(fact.Sources) > 0 {
		entry.Role = continuo.System
	}
	conversation, err := m.open(ctx, scope, statement.Owner)
	if err != nil {
		return Fact{}, err
	}
	audit.About(ctx, conversation.ID)
	options := continuo.AppendOptions{Key: statement.Key}
	if statement.Key != "" {
		options.Identity = text
	}
	stored, err := m.log.Append(ctx, conversation.ID, []continuo.Entry{entry}, options)
	if err != nil {
		return Fact{}, err
	}
	if len(supersedes) == 0 { // else it is the fact that is corrected
		audit.Targets(ctx, strconv.FormatInt(stored[0].Seq, 10))
	}
	if stored[0].Redacted != nil {
		return Fact{}, fmt.Errorf("the fact of this idempotency key was forgotten: %w", continuo.ErrNotFound)
	}
	if err := m.updateProfile(ctx, conversation); err != nil {
		return Fact{}, err
	}
	_, known, err := m.known(ctx, scope, statement.Owner)
	if err != nil {
		return Fact{}, err
	}
	if found := memory.Find(known, stored[0].Seq); found != nil {
		return factOf(conversation, found), nil
	}
	return Fact{}, fmt.Errorf("fact %d: %w", stored[0].Seq, continuo.ErrNotFound) // it was forgotten at once
}

// fact is a statement of an entry as a fact, without sources. Where it does not say so, the rules find the kind, the attribute and the end.
func (s *Statement) fact(entry *continuo.Entry, said time.Time) *continuo.Fact {
	fact := &continuo.Fact{
		Kind: s.Kind, Subject: cmp.Or(s.Subject, memory.UserSubject), Attribute: s.Attribute, ValidFrom: said, Confidence: 1, By: cmp.Or(s.By, memory.ByPerson),
	}
	if s.Kind == "" {
		fact.Kind = continuo.FactOther
		if found := memory.Extract(entry); len(found) > 0 {
			fact.Kind, fact.Attribute = found[0].Kind, cmp.Or(s.Attribute, found[0].Attribute)
		}
	}
	fact.ValidTo = cmp.Or(s.ValidTo, memory.Ending(fact.Kind, entry.Content.String(), said))
	return fact
}

// Forget removes a fact permanently, from the memory and from all that was made of it, with the other facts that have its
// words; ErrNotFound. It is not extracted again from the same message. With sources, the messages that it was taken from are redacted too.
func (m *Memories) Forget(ctx context.Context, scope continuo.Scope, owner Owner, id int64, sources bool) error {
	if err := owner.checkWritable(scope); err != nil {
		return err
	}
	conversation, known, err := m.known(ctx, scope, owner)
	if err != nil {
		return err
	}
	found := memory.Find(known, id)
	if found == nil {
		return fmt.Errorf("fact %d: %w", id, continuo.ErrNotFound)
	}
	audit.About(ctx, conversation.ID)
	if sources {
		if err := m.redactSources(ctx, found); err != nil {
			return err
		}
	}
	for _, seq := range append(copies(known, found), id) { // it last, so that a failure leaves it to be forgotten again
		if _, err := m.log.Redact(ctx, conversation, seq, seq, forgotten); err != nil {
			return err
		}
	}
	return m.updateProfile(ctx, conversation)
}

// copies returns the seqs of other facts that have the words of a fact: those that say the same of its subject, those with its
// words of a message, and patterns that rest on the message.
func copies(known []memory.Known, fact *memory.Known) (seqs []int64) {
	key := memory.Key(fact.Subject, fact.Text)
	for i := range known {
		k := &known[i]
		isCopy := memory.Key(k.Subject, k.Text) == key || fact.HasSource(func(of continuo.FactSource) bool {
			return k.HasSource(func(s continuo.FactSource) bool {
				isSame := s.ConversationID == of.ConversationID && s.Seq == of.Seq
				return isSame && (k.Derived || strings.Contains(s.Quote, of.Quote) || strings.Contains(of.Quote, s.Quote))
			})
		})
		if isCopy && k.Seq != fact.Seq {
			seqs = append(seqs, k.Seq)
		}
	}
	return seqs
}

// forgotten is the reason of the redactions of facts that were forgotten.
const forgotten = "forgotten"

func (m *Memories) redactSources(ctx context.Context, found *memory.Known) error {
	for _, source := range found.Sources {
		conversation, err := m.log.Conversation(ctx, source.ConversationID)
		if errors.Is(err, continuo.ErrNotFound) {
			continue
		}
		if err == nil {
			_, err = m.log.Redact(ctx, conversation, source.Seq, source.Seq, forgotten)
		}
		if err != nil {
			return fmt.Errorf("redact the source of fact %d: %w", found.Seq, err)
		}
	}
	return nil
}

// ForgetAll removes a memory with all of its facts; ErrNotFound where there is none. With sources, the messages that the
// facts were taken from are redacted too.
func (m *Memories) ForgetAll(ctx context.Context, scope continuo.Scope, owner Owner, sources bool) error {
	if err := owner.checkWritable(scope); err != nil {
		return err
	}
	if err := m.skip(ctx, scope, owner); err != nil {
		return err
	}
	found, known, err := m.known(ctx, scope, owner)
	switch {
	case err != nil:
		return err
	case found.ID == "":
		return fmt.Errorf("the memory: %w", continuo.ErrNotFound)
	}
	audit.About(ctx, found.ID)
	for i := range known {
		if !sources {
			break
		}
		if err := m.redactSources(ctx, &known[i]); err != nil {
			return err
		}
	}
	if err := m.redactAll(ctx, found); err != nil {
		return err
	}
	return m.log.Delete(ctx, found.ID)
}

// redactAll redacts all entries of a memory: a deletion would leave their terms in the index for a moment.
func (m *Memories) redactAll(ctx context.Context, found continuo.Conversation) error {
	const atOnce = 10_000
	for from := int64(1); from <= found.LastSeq; from += atOnce {
		if _, err := m.log.Redact(ctx, found, from, min(from+atOnce-1, found.LastSeq), forgotten); err != nil {
			return err
		}
	}
	return nil
}
