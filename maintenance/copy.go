package maintenance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Copier makes one store equal to another. It compares both sides conversation by conversation and page by page, and
// writes the differences; so it can be stopped and repeated, and what is copied already is only read. Both stores may
// be read in the meantime.
type Copier struct {
	From, To Store
	// Workers is how many conversations are copied concurrently. Default 8.
	Workers int
	// Progress is called with the progress of a pass, from several goroutines. Default none.
	Progress func(Progress)
}

// Progress is how far a pass of a copy has got.
type Progress struct {
	Pass          int
	Conversations int64 // compared
	Total         int64 // of the source, when the pass began
	Records       int64 // written
}

// Copied is the result of a copy.
type Copied struct {
	Passes        int   `json:"passes"`
	Conversations int64 `json:"conversations"`
	Records       int64 `json:"records"` // in the source
	Written       int64 `json:"written"`
	Removed       int64 `json:"removed"` // conversations that the source no longer has
	Blobs         int64 `json:"blobs"`
	Keys          int64 `json:"keys"`
	// FromSHA256 and ToSHA256 are hashes of all records on each side, in the order of the conversations' ids, in hex.
	FromSHA256 string `json:"from_sha256"`
	ToSHA256   string `json:"to_sha256"`
}

// maxPasses bounds the passes over a source that keeps changing.
const maxPasses = 10

// Copy copies until a whole pass finds no difference. It fails if the source keeps changing.
func (c *Copier) Copy(ctx context.Context) (Copied, error) {
	var total Copied
	if err := c.copyKeys(ctx, &total); err != nil {
		return total, fmt.Errorf("copy projects and keys: %w", err)
	}
	if err := c.copySpending(ctx); err != nil {
		return total, fmt.Errorf("copy what was spent: %w", err)
	}
	for pass := 1; pass <= maxPasses; pass++ {
		if err := c.copyBlobs(ctx, &total); err != nil {
			return total, fmt.Errorf("copy blobs: %w", err)
		}
		changed, err := c.pass(ctx, pass, &total)
		if err != nil || !changed {
			return total, err
		}
	}
	return total, errors.New("the source changes faster than it is copied: stop the programs that write to it, and copy again (what is copied stays)")
}

// Verify compares the stores and writes nothing. The copy may have more projects, keys and blobs than the source.
func (c *Copier) Verify(ctx context.Context) (Copied, error) {
	var total Copied
	check := *c
	check.To = readOnly{c.To}
	if err := check.verifyKeys(ctx, &total); err != nil {
		return total, err
	}
	if err := check.verifySpending(ctx); err != nil {
		return total, err
	}
	if err := check.copyBlobs(ctx, &total); err != nil {
		return total, err
	}
	_, err := check.pass(ctx, 1, &total)
	return total, err
}

// readOnly refuses writes: a record that would have to be written differs.
type readOnly struct{ Store }

func (readOnly) PutRecords(_ context.Context, id string, records []Record) error {
	position := records[0].Position()
	return fmt.Errorf("conversation %s differs from its copy at %s", id, describePosition(position))
}

func (readOnly) Archive(_ context.Context, seen continuo.Conversation, _ time.Time) error {
	return fmt.Errorf("conversation %s is archived in the source and not in the copy", seen.ID)
}

func (readOnly) Delete(_ context.Context, id string) error {
	return fmt.Errorf("conversation %s: the copy has what the source does not have", id)
}

func (readOnly) PutBlob(_ context.Context, hash string, _ []byte) error {
	return fmt.Errorf("the copy does not have the blob %s", hash)
}

func describePosition(position RecordPosition) string {
	switch position.Kind {
	case RecordEntry:
		return fmt.Sprintf("entry %d", position.Seq)
	case RecordReceipt:
		return "the receipt of the key " + position.Key
	case RecordTurn:
		return "turn " + position.Key
	case RecordPrefix:
		return fmt.Sprintf("the prefix at entry %d", position.Seq)
	case RecordConversation:
	}
	return "its own record"
}

// pass compares all conversations once and reports whether anything differed.
func (c *Copier) pass(ctx context.Context, number int, total *Copied) (changed bool, err error) {
	p := &pass{Copier: c, number: number, digests: map[string][2]string{}}
	ids, err := p.list(ctx)
	if err != nil {
		return false, err
	}
	if err := p.copyAll(ctx, ids); err != nil {
		return false, err
	}
	removed, err := p.removeOthers(ctx, ids)
	if err != nil {
		return false, err
	}
	total.Passes, total.Conversations, total.Records = number, int64(len(ids)), p.read.Load()
	total.Written, total.Removed = total.Written+p.written.Load(), total.Removed+removed+p.deleted.Load()
	total.FromSHA256, total.ToSHA256 = p.digest(ids)
	return p.written.Load()+p.stale.Load()+removed > 0, nil
}

// pass is one pass over the source.
type pass struct {
	*Copier
	number  int
	total   int64
	looked  atomic.Int64
	read    atomic.Int64
	written atomic.Int64
	stale   atomic.Int64 // conversations with records that the source does not have
	deleted atomic.Int64 // those of them that were deleted in the source and are kept for their forks

	mu      sync.Mutex
	digests map[string][2]string // of each conversation, from and to
	forks   []string             // copied after the others, since they need their ancestors
}

func (p *pass) list(ctx context.Context) (ids []string, err error) {
	for id, err := range conversationIDs(ctx, p.From) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	p.total = int64(len(ids))
	return ids, nil
}

// copyAll copies conversations, several concurrently, and then the forks among them, each after its ancestors.
func (p *pass) copyAll(ctx context.Context, ids []string) error {
	err := p.each(ctx, ids, func(ctx context.Context, id string) error {
		first, err := p.From.Records(ctx, id, RecordPosition{}, 1)
		if err == nil && len(first) > 0 && first[0].Conversation != nil && len(first[0].Conversation.Lineage) > 0 {
			p.mu.Lock()
			p.forks = append(p.forks, id)
			p.mu.Unlock()
			return nil
		}
		if err != nil {
			return err
		}
		return p.copyOne(ctx, id, first)
	})
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, id := range p.forks {
		if err := p.copyFork(ctx, id, done); err != nil {
			return err
		}
	}
	return nil
}

// copyFork copies a fork after the forks that it begins with.
func (p *pass) copyFork(ctx context.Context, id string, done map[string]bool) error {
	if done[id] {
		return nil
	}
	done[id] = true
	first, err := p.From.Records(ctx, id, RecordPosition{}, 1)
	if err != nil {
		return err
	}
	for _, record := range first {
		for _, ancestor := range record.Conversation.Lineage {
			above, err := p.From.Records(ctx, ancestor.ConversationID, RecordPosition{}, 1)
			if err == nil && len(above) > 0 && above[0].Conversation != nil && len(above[0].Conversation.Lineage) > 0 {
				err = p.copyFork(ctx, ancestor.ConversationID, done)
			}
			if err != nil {
				return err
			}
		}
	}
	return p.copyOne(ctx, id, first)
}

// each calls work for all ids, Workers at once, until one fails.
func (p *pass) each(ctx context.Context, ids []string, work func(context.Context, string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := p.Workers
	if workers < 1 {
		workers = 8
	}
	var next atomic.Int64
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(ids) {
					return
				}
				if err := work(ctx, ids[i]); err != nil {
					cancel(fmt.Errorf("copy conversation %s: %w", ids[i], err))
				}
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// copyOne makes a conversation of the destination equal to the source's; first has the source's own record of it. A
// conversation with records that the source does not have (any more) is removed and copied again.
func (p *pass) copyOne(ctx context.Context, id string, first []Record) error {
	if len(first) > 0 && first[0].Conversation != nil {
		if err := p.retire(ctx, first[0].Conversation); err != nil {
			return err
		}
	}
	stale, err := p.copyRecords(ctx, id)
	if err == nil && stale {
		p.stale.Add(1)
		if err = p.To.Delete(ctx, id); err == nil || errors.Is(err, continuo.ErrNotFound) { // forks keep a deleted one
			err = p.copyAgain(ctx, id, first)
		}
	}
	p.looked.Add(1)
	p.report()
	return err
}

// copyAgain copies a conversation that was removed, after those that it begins with: some of these may have been kept
// only for it, and be gone as well.
func (p *pass) copyAgain(ctx context.Context, id string, first []Record) error {
	for _, record := range first {
		for _, ancestor := range record.Conversation.Lineage {
			if _, err := p.copyRecords(ctx, ancestor.ConversationID); err != nil {
				return err
			}
		}
	}
	_, err := p.copyRecords(ctx, id)
	return err
}

// retire deletes or archives at the destination what was deleted or archived in the source since the last copy: the
// store then knows which entries and objects are still needed.
func (p *pass) retire(ctx context.Context, here *ConversationRecord) error {
	if !here.Deleted && here.ArchivedAt.IsZero() {
		return nil
	}
	there, err := head(ctx, p.To, here.ID)
	switch {
	case err != nil || there == nil:
		return err
	case here.Deleted:
		if err = p.To.Delete(ctx, here.ID); err == nil {
			p.deleted.Add(1)
		}
	case there.ArchivedAt.IsZero():
		err = p.To.Archive(ctx, there.Conversation, here.ArchivedAt)
	default:
		return nil
	}
	p.stale.Add(1)
	if errors.Is(err, continuo.ErrBusy) || errors.Is(err, continuo.ErrNotFound) {
		return nil // the source's records replace those of the destination
	}
	return err
}

// copyRecords copies the records that differ, and reports whether the destination has others.
func (p *pass) copyRecords(ctx context.Context, id string) (stale bool, err error) {
	from, to := sha256.New(), sha256.New()
	after := RecordPosition{}
	for {
		page, err := p.From.Records(ctx, id, after, pageSize)
		if err != nil {
			return false, err
		}
		if len(page) == 0 {
			break
		}
		last := page[len(page)-1].Position()
		there, err := between(ctx, p.To, id, after, last)
		if err == nil && others(there, page) {
			return true, nil
		}
		if err == nil {
			err = p.copyPage(ctx, id, page, there, from, to)
		}
		if err != nil {
			return false, err
		}
		after = last
	}
	more, err := p.To.Records(ctx, id, after, 1)
	if err != nil || len(more) > 0 {
		return true, err
	}
	p.mu.Lock()
	p.digests[id] = [2]string{hex.EncodeToString(from.Sum(nil)), hex.EncodeToString(to.Sum(nil))}
	p.mu.Unlock()
	return false, nil
}

// between reads the records after one position up to another, by position.
func between(ctx context.Context, store RecordStore, id string, after, last RecordPosition) (map[RecordPosition][]byte, error) {
	found := map[RecordPosition][]byte{}
	for {
		page, err := store.Records(ctx, id, after, pageSize)
		if err != nil || len(page) == 0 {
			return found, err
		}
		for i := range page {
			if after = page[i].Position(); after.Compare(last) > 0 {
				return found, nil
			}
			found[after] = encode(&page[i])
		}
		if after == last {
			return found, nil
		}
	}
}

// others reports whether there is a record that is not among those of a page.
func others(there map[RecordPosition][]byte, page []Record) bool {
	known := 0
	for i := range page {
		if _, ok := there[page[i].Position()]; ok {
			known++
		}
	}
	return known < len(there)
}

func (p *pass) report() {
	if p.Progress != nil {
		p.Progress(Progress{p.number, p.looked.Load(), p.total, p.written.Load()})
	}
}

// copyPage writes those records of a page that the destination lacks or has in another state.
func (p *pass) copyPage(ctx context.Context, id string, page []Record, there map[RecordPosition][]byte, from, to hash.Hash) error {
	var differ []Record
	for i := range page {
		line, have := encode(&page[i]), there[page[i].Position()]
		_, _ = from.Write(line) // a hash never fails
		_, _ = to.Write(have)
		if !bytes.Equal(line, have) {
			differ = append(differ, page[i])
		}
	}
	p.read.Add(int64(len(page)))
	if len(differ) == 0 {
		return nil
	}
	p.written.Add(int64(len(differ)))
	return p.To.PutRecords(ctx, id, differ)
}

// encode is a record in the form for comparison: without times of a lease, which are from another store's clock.
func encode(record *Record) []byte {
	same := *record
	if same.Turn != nil {
		turn := *same.Turn
		turn.LeaseUntil, turn.LeaseExpired = time.Time{}, false
		same.Turn = &turn
	}
	return append(rawjson.MustMarshal(same), '\n')
}

// removeOthers removes the conversations that the source does not have.
func (p *pass) removeOthers(ctx context.Context, ids []string) (removed int64, err error) {
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		there[id] = true
	}
	var deleted []string
	for id, err := range conversationIDs(ctx, p.To) {
		if err != nil {
			return 0, err
		}
		if !there[id] {
			deleted = append(deleted, id)
		}
	}
	for i := len(deleted) - 1; i >= 0; i-- { // forks before their ancestors
		switch err := p.To.Delete(ctx, deleted[i]); {
		case errors.Is(err, continuo.ErrNotFound): // deleted already; kept for its forks
		case err != nil:
			return removed, fmt.Errorf("remove conversation %s: %w", deleted[i], err)
		default:
			removed++
		}
	}
	return removed, nil
}

// digest hashes both sides.
func (p *pass) digest(ids []string) (from, to string) {
	sums := [2]hash.Hash{sha256.New(), sha256.New()}
	for _, id := range ids {
		for side, digest := range p.digests[id] {
			fmt.Fprintf(sums[side], "%s %s\n", id, digest)
		}
	}
	return hex.EncodeToString(sums[0].Sum(nil)), hex.EncodeToString(sums[1].Sum(nil))
}
