package continuo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Log is the only way to write to a store and checks every rule about entries. It is safe for concurrent use;
// concurrent appends to one conversation share one commit.
type Log struct {
	store   Store
	options LogOptions

	mu         sync.Mutex
	writers    map[string]*writer
	broadcasts map[string]*broadcast // of the conversations that have listeners
	blobs      map[string]bool       // hashes of envelopes that are known to be stored
	notified   atomic.Bool           // the store reports changes at present
	back       atomic.Int64          // when it last began to report, in Unix nanoseconds
	lost       atomic.Bool           // the store reported changes and lost its connection
	cache      *entryCache           // nil for none
	large      chan struct{}         // semaphore: one element per large entry being read
}

// LogOptions configures a Log. The zero value works.
type LogOptions struct {
	// Counter counts tokens at append. Default: [RoughCounter].
	Counter Counter
	// MaxEntryBytes bounds the stored form of one entry, without its objects, whose size the caller bounds. Default 32
	// MiB.
	MaxEntryBytes int
	// Objects stores data that is too large for an entry. Default: none, and all data is stored in its entry.
	Objects ObjectStore
	// Archives has the archived conversations, which redactions reach into. Default: none, and a redaction that has to
	// fails with ErrArchived.
	Archives Archives
	// MaxInlineOutput is the largest text of a tool output, in bytes, that is stored in its entry. The entry of a
	// larger output has a preview, and the complete output is an object. Default 256 KiB.
	MaxInlineOutput int
	// MaxInlinePart is the largest non-text content part (an image, a file, audio), in bytes of JSON, that is stored in
	// its entry. A larger part is an object; see Attachment. Default 64 KiB.
	MaxInlinePart int
	// CacheBytes bounds the memory for the newest entries of conversations in use, which are then not read from the
	// store again; -1 for none. Default 64 MiB. It is never more than a sixteenth of the process's memory limit
	// (GOMEMLIMIT).
	CacheBytes int64
	// Charged is called with what [Log.Charge] has stored. It must be safe for concurrent use, and fast. Default: nothing
	// is called.
	Charged func([]Spending)
	// Prices says what requests cost: Append records it with the usage of each request. Default: nothing is known.
	Prices PriceList
	// PageRead is called after each page of entries that was read, from memory or from the store. It must be safe for
	// concurrent use, and fast. Default: nothing is called.
	PageRead func(fromMemory bool)
	// Poll is how often Tail polls for entries of other processes when the store does not report changes. Default 500
	// ms.
	Poll time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// IDs generates ids. Default a new IDSource.
	IDs *IDSource
}

// NewLog makes a log over a store, which the caller closes. It panics without a store.
func NewLog(store Store, options LogOptions) *Log {
	if store == nil {
		panic("continuo: NewLog needs a Store, such as one that sqlite.Open returns")
	}
	if options.Counter == nil {
		options.Counter = RoughCounter{}
	}
	if options.MaxEntryBytes == 0 {
		options.MaxEntryBytes = 32 << 20
	}
	if options.MaxInlineOutput == 0 {
		options.MaxInlineOutput = 256 << 10
	}
	if options.MaxInlinePart == 0 {
		options.MaxInlinePart = 64 << 10
	}
	if options.Poll == 0 {
		options.Poll = 500 * time.Millisecond
	}
	if options.Charged == nil {
		options.Charged = func([]Spending) {}
	}
	if options.PageRead == nil {
		options.PageRead = func(bool) {}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.IDs == nil {
		options.IDs = &IDSource{}
	}
	return &Log{store: store, options: options, writers: map[string]*writer{}, broadcasts: map[string]*broadcast{}, blobs: map[string]bool{}, cache: newEntryCache(options.CacheBytes), large: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)/4))}
}

// Turns returns the part of the store that keeps turns; package turn implements their rules.
func (l *Log) Turns() TurnStore { return l.store }

// Runs returns the part of the store that finds runs.
func (l *Log) Runs() RunStore { return l.store }

// Leases returns the part of the store that keeps leases for exclusive jobs.
func (l *Log) Leases() LeaseStore { return l.store }

// NewID generates an id with the log's clock and id source.
func (l *Log) NewID(prefix string) string { return l.options.IDs.New(prefix, l.options.Now()) }

// Create creates an empty conversation. The log sets its ID, times and defaults; ErrExists when the key is taken.
func (l *Log) Create(ctx context.Context, conversation Conversation) (Conversation, error) {
	return l.Import(ctx, conversation, nil)
}

// Import creates a conversation together with its first entries, all or nothing. Entries may have Repairs, which Append
// refuses. The entries may end with open calls, whose results can be appended later.
func (l *Log) Import(ctx context.Context, conversation Conversation, entries []Entry) (Conversation, error) {
	conversation, err := l.newConversation(conversation, entries)
	if err != nil {
		return Conversation{}, err
	}
	for i := range entries {
		if err := checkShape(&entries[i]); err != nil {
			return Conversation{}, atIndex(err, i)
		}
	}
	prepared, err := l.offload(ctx, conversation.ID, entries)
	if err != nil {
		return Conversation{}, fmt.Errorf("create conversation: %w", err)
	}
	prepared = withoutRuns(prepared)
	if err := l.create(ctx, &conversation, prepared); err != nil {
		if wasRefused(err) {
			l.drop(ctx, conversation.ID, prepared, nil)
		}
		return Conversation{}, err
	}
	return conversation, l.noteDeletions(ctx, conversation.ID, prepared, 0)
}

// PriceUsage returns a usage with what it costs by [LogOptions].Prices, unless it has a cost.
func (l *Log) PriceUsage(provider, model string, usage Usage) Usage {
	if l.options.Prices != nil && usage.Cost == (Cost{}) {
		usage.Cost = l.options.Prices.Cost(provider, model, usage)
	}
	return usage
}

// CachePrices returns what a provider charges for input that its cache has, and for input that it writes there;
// DefaultCachePrices where no price of a cache is known.
func (l *Log) CachePrices(provider, model string) CachePrices {
	if l == nil || l.options.Prices == nil {
		return DefaultCachePrices
	}
	const tokens = 1000 // few: large requests may have other prices
	price := func(usage Usage) int64 { return l.options.Prices.Cost(provider, model, usage).Nano }
	usual := price(Usage{InputTokens: tokens})
	if usual <= 0 {
		return DefaultCachePrices
	}
	read := price(Usage{InputTokens: tokens, CachedTokens: tokens})
	written := price(Usage{InputTokens: tokens, CacheWriteTokens: tokens})
	if read >= usual { // none is known
		return DefaultCachePrices
	}
	return CachePrices{Read: int(read * million / usual), Write: int(written * million / usual)}
}

// price adds what its request cost to an entry, unless it has it.
func (l *Log) price(entry *Entry) {
	if entry.Round == nil || entry.Round.Usage == nil {
		return
	}
	usage := l.PriceUsage(entry.Round.Provider, entry.Round.Model, *entry.Round.Usage)
	if usage != *entry.Round.Usage {
		round := *entry.Round // the caller's
		round.Usage, entry.Round = &usage, &round
	}
}

// NewConversation sets what the log sets of a new conversation, as Create does, without storing it; see
// AppendOptions.Create.
func (l *Log) NewConversation(conversation Conversation) (Conversation, error) {
	return l.newConversation(conversation, nil)
}

// CreateNew stores a conversation that NewConversation has made; ErrExists when the key is taken.
func (l *Log) CreateNew(ctx context.Context, conversation Conversation) error {
	return l.create(ctx, &conversation, nil)
}

func (l *Log) newConversation(conversation Conversation, entries []Entry) (Conversation, error) {
	conversation.ID = l.NewID("conv")
	if conversation.ProjectID == "" {
		conversation.ProjectID = DefaultProject
	}
	if conversation.ActiveMode == "" {
		conversation.ActiveMode = ModeChat
	}
	conversation.CreatedAt, conversation.UpdatedAt = timesOf(conversation, entries, l.now())
	return conversation, errors.Join(CheckMetadata(conversation.Metadata), CheckUserID(conversation.UserID))
}

// timesOf returns the creation and change times of an imported conversation: its own, else those of its entries. No
// time is after now: a later one would keep the conversation first in every list.
func timesOf(conversation Conversation, entries []Entry, now time.Time) (created, updated time.Time) {
	created, updated = conversation.CreatedAt, conversation.UpdatedAt
	fromEntries := created.IsZero()
	for i := range entries {
		at := entries[i].CreatedAt
		if at.IsZero() {
			at = now
		}
		if fromEntries && (created.IsZero() || at.Before(created)) {
			created = at
		}
		if at.After(updated) {
			updated = at
		}
	}
	if created.IsZero() || created.After(now) {
		created = now
	}
	if updated.Before(created) || updated.After(now) {
		updated = now
	}
	return created.UTC(), updated.UTC()
}

// withoutRuns removes the events of runs and tasks, and the Summary, Recall, Fact and Profile fields, from entries: they are
// valid only in the log in which they were written. The content of the entries stays.
func withoutRuns(entries []Entry) []Entry {
	without := slices.Clone(entries)
	for i := range without {
		without[i].RunEvent, without[i].TaskEvent, without[i].Summary, without[i].Recall = nil, nil, nil, nil
		without[i].Fact, without[i].Profile = nil, nil
	}
	return without
}

// create adds a new conversation with entries of valid shape to the store.
func (l *Log) create(ctx context.Context, conversation *Conversation, entries []Entry) error {
	tail := tailState{}
	for i := range entries {
		if err := l.prepare(ctx, conversation, &tail, &entries[i]); err != nil {
			return atIndex(err, i)
		}
	}
	conversation.LastSeq = tail.last
	if err := l.store.Create(ctx, *conversation, entries); err != nil {
		return fmt.Errorf("create conversation: %w", err)
	}
	return nil
}

// Conversation finds a conversation by id; ErrNotFound.
func (l *Log) Conversation(ctx context.Context, id string) (Conversation, error) {
	conversation, err := l.store.Conversation(ctx, id)
	if err != nil {
		return Conversation{}, fmt.Errorf("conversation %s: %w", id, err)
	}
	return conversation, nil
}

// ConversationsByID finds those of some conversations that exist, with one query of the store.
func (l *Log) ConversationsByID(ctx context.Context, ids []string) (map[string]*Conversation, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := l.store.ConversationsByID(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("find conversations: %w", err)
	}
	byID := make(map[string]*Conversation, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
	}
	return byID, nil
}

// Find finds a conversation within a scope by its id or by its key; ErrNotFound. The id has precedence.
func (l *Log) Find(ctx context.Context, scope Scope, idOrKey string) (Conversation, error) {
	conversation, err := Conversation{}, ErrNotFound
	if strings.HasPrefix(idOrKey, "conv_") { // the prefix of NewID; keys do not begin with it
		conversation, err = l.store.Conversation(ctx, idOrKey)
	}
	if errors.Is(err, ErrNotFound) || err == nil && conversation.ProjectID != scope.ProjectID {
		conversation, err = l.store.ConversationByKey(ctx, scope.ProjectID, idOrKey)
	}
	if err == nil && !scope.Has(conversation) {
		err = ErrNotFound
	}
	if err != nil {
		return Conversation{}, fmt.Errorf("conversation %s: %w", idOrKey, err)
	}
	return conversation, nil
}

// FindRun finds a run of a conversation within a scope; ErrNotFound.
func (l *Log) FindRun(ctx context.Context, scope Scope, id string) (Run, error) {
	run, err := l.store.Run(ctx, scope.ProjectID, id)
	if err != nil || scope.UserID == "" {
		return run, err
	}
	conversation, err := l.store.Conversation(ctx, run.ConversationID)
	if err == nil && !scope.Has(conversation) {
		err = ErrNotFound
	}
	if err != nil {
		return Run{}, err
	}
	return run, nil
}

// Conversations lists a project's conversations, the most recently changed first.
func (l *Log) Conversations(ctx context.Context, query ConversationQuery) ([]Conversation, error) {
	return l.store.Conversations(ctx, query)
}

// Update changes the fields of a conversation, not its entries. A new user's memory has no facts from it, and those that
// the old one's had are redacted; ErrNotFound, and ErrExists when another conversation
// has the key.
func (l *Log) Update(ctx context.Context, id string, change ConversationChange) (Conversation, error) {
	if err := CheckMetadata(change.Metadata); err != nil {
		return Conversation{}, err
	}
	for _, user := range []*string{change.UserID, change.Claim} {
		if user == nil {
			continue
		}
		if err := CheckUserID(*user); err != nil {
			return Conversation{}, err
		}
	}
	if now := l.now(); change.UpdatedAt.IsZero() || change.UpdatedAt.After(now) {
		change.UpdatedAt = now
	}
	var before Conversation
	if change.UserID != nil || change.Claim != nil {
		var err error
		if before, err = l.Conversation(ctx, id); err != nil {
			return Conversation{}, err
		}
	}
	conversation, err := l.store.Update(ctx, id, change)
	if err != nil {
		return Conversation{}, fmt.Errorf("change conversation %s: %w", id, err)
	}
	if before.ID != "" && before.UserID != conversation.UserID {
		err := l.retractAll(ctx, before)
		if err == nil {
			err = l.redactForOthers(ctx, conversation)
		}
		if err != nil {
			return Conversation{}, fmt.Errorf("change conversation %s: %w", id, err)
		}
	}
	return conversation, nil
}

// Delete deletes a conversation and the branches of its runs, and redacts the facts that were taken from it. Its forks
// keep the entries that they inherited.
func (l *Log) Delete(ctx context.Context, id string) error {
	if err := l.deleteBranches(ctx, id); err != nil {
		return fmt.Errorf("delete conversation %s: %w", id, err)
	}
	deleted, err := l.Conversation(ctx, id)
	if err == nil {
		err = l.retractAll(ctx, deleted)
	}
	if err == nil {
		err = l.store.Delete(ctx, id)
	}
	if err == nil { // facts that were taken from it meanwhile
		err = l.retractAll(ctx, deleted)
	}
	if err != nil {
		return fmt.Errorf("delete conversation %s: %w", id, err)
	}
	l.mu.Lock()
	delete(l.writers, id)
	l.mu.Unlock()
	l.cache.drop(id, math.MaxInt64)
	l.announce(id)
	_, _ = l.Sweep(ctx) // a failed removal is retried by the next sweep
	return nil
}

// Now returns the time of the log's clock.
func (l *Log) Now() time.Time { return l.now() }

func (l *Log) now() time.Time { return l.options.Now().UTC() }

// CheckMetadata refuses metadata that is not a JSON object; nil is fine.
func CheckMetadata(metadata json.RawMessage) error {
	if metadata == nil {
		return nil
	}
	if _, err := rawjson.ParseObject(metadata); err != nil {
		return fmt.Errorf("metadata must be a JSON object: %w", ErrInvalid)
	}
	return nil
}
