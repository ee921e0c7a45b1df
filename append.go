package continuo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// AppendOptions sets the conditions of an append. The zero value appends at the end without conditions.
type AppendOptions struct {
	// ExpectSeq is the seq that the first entry must get, 0 for any. Append fails with a *ConflictError when it would
	// get another one.
	ExpectSeq int64
	// Key is an idempotency key: a later append with the same key returns the entries of the first, or ErrKeyReused
	// when its request differs. Default none.
	Key string
	// Identity distinguishes a retry with the same key from another request. Default: a hash of the entries.
	Identity string
	// Turn returns an update of a turn that is committed or refused together with the entries. Stored are the entries
	// as they will be stored. Turn may be called again when another append came first. Default none.
	Turn func(stored []Entry) TurnUpdate
	// Begin returns a turn that begins with the entries, of which there may be none; it is called as Turn. The Begun of
	// the value that it returned last is valid when Append returns nil. An append with Begin has neither Key nor Turn.
	// Default none.
	Begin func(stored []Entry) *TurnBegin
	// Prefixes returns the prefixes that the entries complete; their ConversationID is set by Append. It is called as
	// Turn. Default none.
	Prefixes func(stored []Entry) []Prefix
	// Create is the conversation where the append creates it; [Log.NewConversation] makes it. Only an append with Begin
	// has it. It fails with ErrExists when the key is taken. Default none.
	Create *Conversation
	// Blobs are stored with the entries; see [Log.EnvelopeBlob]. Default none.
	Blobs []Blob
	// Repaired says that entries may have Repairs, as those of an import may: a client's history was repaired. Default: they
	// are refused.
	Repaired bool
	// Snapshot is the end of the conversation as the caller has read it, so that Append need not read it. It may be out
	// of date. Default none.
	Snapshot *Snapshot
}

// Append adds entries to a conversation, all or none, and returns them as stored. It fails with a *RuleError when an
// entry breaks a rule of the log at its position, with a *ConflictError when ExpectSeq does not match, and with
// ErrNotFound. The entries are durable when Append returns.
func (l *Log) Append(ctx context.Context, conversationID string, entries []Entry, options AppendOptions) ([]Entry, error) {
	switch {
	case len(entries) == 0 && options.Begin == nil:
		return nil, fmt.Errorf("append: %w: no entries", ErrInvalid)
	case options.Begin != nil && (options.Key != "" || options.Turn != nil):
		return nil, fmt.Errorf("append: %w: a turn begins without an idempotency key and without an update of a turn", ErrInvalid)
	case options.Create != nil && options.Begin == nil:
		return nil, fmt.Errorf("append: %w: only an append that begins a turn creates a conversation", ErrInvalid)
	}
	for i := range entries {
		if len(entries[i].Repairs) > 0 && !options.Repaired {
			return nil, atIndex(broken(RuleRepairs, "only an import, and the history of a client, may carry repairs"), i)
		}
		if err := checkShape(&entries[i]); err != nil {
			return nil, atIndex(err, i)
		}
	}
	request := &appendRequest{ctx: ctx, options: options, done: make(chan struct{}), lead: make(chan struct{})}
	if options.Key != "" {
		request.fingerprint = options.Identity
	}
	if options.Key != "" && options.Identity == "" {
		request.fingerprint = fingerprint(entries)
	}
	if err := l.checkFacts(ctx, conversationID, entries); err != nil {
		return nil, err
	}
	if err := l.noteNewDeletions(ctx, conversationID, entries); err != nil {
		return nil, err
	}
	shorter, err := l.offload(ctx, conversationID, entries)
	if err != nil {
		return nil, fmt.Errorf("append to conversation %s: %w", conversationID, err)
	}
	request.entries = shorter
	l.writer(conversationID).submit(request)
	if request.err != nil {
		if wasRefused(request.err) {
			l.drop(ctx, conversationID, shorter, nil)
		}
		return nil, request.err
	}
	l.KnowBlobs(options.Blobs)
	l.cacheAppended(conversationID, request)
	l.drop(ctx, conversationID, shorter, request.stored) // the key may have returned the entries of an earlier append
	if len(request.stored) > 0 {
		l.announce(conversationID)
	}
	if err := l.settleFacts(ctx, conversationID, request.stored, options.Snapshot); err != nil {
		return nil, fmt.Errorf("append to conversation %s: %w", conversationID, err)
	}
	return request.stored, nil
}

// cacheAppended keeps entries that were appended, where they continue what the cache has, so that the next reader finds
// them there. Entries that exceed a page are left out: the cache holds what is read often.
func (l *Log) cacheAppended(conversationID string, request *appendRequest) {
	if l.cache == nil || len(request.stored) == 0 || !request.isNew {
		return
	}
	size := int64(0)
	for i := range request.stored {
		size += request.stored[i].bytes()
	}
	if size > pageBytes || !l.cache.isContinued(conversationID, request.revision, request.stored[0].Seq) {
		return
	}
	if read, err := asRead(request.stored); err == nil {
		l.cache.extend(conversationID, request.revision, read)
	}
}

// Receipt returns the record of what an idempotency key appended to a conversation; ErrNotFound.
func (l *Log) Receipt(ctx context.Context, conversationID, key string) (Receipt, error) {
	return l.store.Receipt(ctx, conversationID, key)
}

// prepare checks an entry of valid shape against the tail, sets its seq and the log's other fields, and advances the
// tail.
func (l *Log) prepare(ctx context.Context, conversation *Conversation, tail *tailState, entry *Entry) error {
	entry.ToolCalls = withTypes(entry.ToolCalls)
	if err := tail.group.advance(entry); err != nil {
		return err
	}
	if entry.CreatedAt.IsZero() {
		entry.CreatedAt = l.now()
	}
	entry.CreatedAt = entry.CreatedAt.UTC()
	entry.ID = l.NewID("ent")
	entry.ConversationID = conversation.ID
	entry.Seq = tail.last + 1
	if entry.Role == Tool && !entry.Hidden && !strings.HasPrefix(entry.OutputRef, FilesFolder) {
		ref, err := l.outputRef(ctx, conversation, tail, entry)
		if err != nil {
			return err
		}
		entry.OutputRef = ref
	}
	entry.nameOutput()
	l.price(entry)
	entry.count(l.options.Counter)
	if size := entry.storedSize(); size > l.options.MaxEntryBytes {
		return broken(RuleTooLarge, "the entry has %d bytes, more than the limit of %d", size, l.options.MaxEntryBytes)
	}
	tail.last = entry.Seq
	return nil
}

// outputRefFolder is the alias folder of a conversation's tool results.
const outputRefFolder = "@state/logs/tool-results/"

// outputRef names a tool result after its call. Call ids may be reused by later calls: then the seq is added to the
// name, and a counter where that name is taken too.
func (l *Log) outputRef(ctx context.Context, conversation *Conversation, tail *tailState, entry *Entry) (string, error) {
	name := outputRefFolder + fileName(entry.ToolCallID)
	for try := 0; ; try++ {
		ref := name + ".json"
		switch try {
		case 0:
		case 1:
			ref = fmt.Sprintf("%s-%d.json", name, entry.Seq)
		default:
			ref = fmt.Sprintf("%s-%d-%d.json", name, entry.Seq, try)
		}
		taken, err := l.refTaken(ctx, conversation, tail, ref)
		if err != nil {
			return "", err
		}
		if !taken {
			tail.refs[ref] = true
			return ref, nil
		}
	}
}

// refTaken reports whether an output ref names another entry, stored or in this batch.
func (l *Log) refTaken(ctx context.Context, conversation *Conversation, tail *tailState, ref string) (bool, error) {
	if tail.refs == nil {
		tail.refs = map[string]bool{}
	}
	if tail.refs[ref] || conversation.LastSeq == 0 || tail.stored.lacks(ref) {
		return tail.refs[ref], nil
	}
	_, err := l.EntryByOutputRef(ctx, *conversation, ref)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// storedRefs remembers the output refs of a conversation, so that most need not be looked up. The zero value knows
// nothing.
type storedRefs struct {
	all    bool     // it has the refs of all stored entries
	hashes []uint32 // two refs may have the same one: then the second is looked up
}

// maxRefs bounds how many output refs of a conversation are remembered.
const maxRefs = 4096

var refSeed = maphash.MakeSeed()

func refHash(ref string) uint32 { return uint32(maphash.String(refSeed, ref)) }

// lacks reports whether no stored entry has the ref; false where that is not known.
func (s *storedRefs) lacks(ref string) bool {
	return s.all && !slices.Contains(s.hashes, refHash(ref))
}

// add remembers the refs of entries that were stored.
func (s *storedRefs) add(entries []Entry) {
	for i := range entries {
		if ref := entries[i].OutputRef; ref != "" && s.all {
			s.hashes = append(s.hashes, refHash(ref))
		}
	}
	if len(s.hashes) > maxRefs {
		*s = storedRefs{}
	}
}

// fileName makes a file name of a call id: any character but letters, digits and "-_." becomes "_".
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, id)
	return strings.TrimLeft(name[:min(len(name), 120)], ".")
}

// storedSize estimates the size of the entry's stored form in bytes without encoding it.
func (e *Entry) storedSize() int {
	size := len(e.Content.text) + len(e.Widget) + len(e.Extra) + len(e.ToolCallID)
	for _, part := range e.Content.parts {
		size += len(part.Raw)
	}
	for _, call := range e.ToolCalls {
		size += len(call.ID) + len(call.Name) + len(call.Arguments) + len(call.Extra)
	}
	for _, data := range e.Vendor {
		size += len(data)
	}
	if e.Reasoning != nil {
		size += len(e.Reasoning.Text) + len(e.Reasoning.Signature)
	}
	return size
}

func fingerprint(entries []Entry) string {
	sum := sha256.Sum256(rawjson.MustMarshal(entries))
	return hex.EncodeToString(sum[:])
}

func atIndex(err error, index int) error {
	var rule *RuleError
	if errors.As(err, &rule) {
		rule.Index = index
	}
	return err
}
