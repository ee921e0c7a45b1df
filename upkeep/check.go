package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Checker looks for what must not be in a store: gaps and repeats, groups that cannot be shown, references
// to what is not there, counts that are wrong, indexes that are not those of the entries, and objects that
// nothing names. It may run while the store is used. It is used once.
type Checker struct {
	Store continuo.Store
	// Objects is checked with the store. Default: objects are not looked at.
	Objects continuo.ObjectStore
	// Counter counts tokens again, of entries that name it. Default: tokens are not counted again.
	Counter continuo.Counter
	// Mend removes objects that nothing names, and has the indexes of words and of runs made anew that are not those of
	// the entries. Everything else is for a person to decide. Where objects are missing that entries
	// name, none is removed: they may be those of another store.
	Mend bool
	// Loose is how old an object that nothing names must be to be told: a younger one may belong to an entry
	// that is about to be appended. Default 24 h.
	Loose time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Progress is told after each conversation. Default none.
	Progress func(Checked)

	blobs   map[string]bool // envelopes that were looked for
	missing int             // objects that entries name
	unnamed []unnamed
}

// Checked counts what was looked at.
type Checked struct {
	Conversations int64 `json:"conversations"`
	Entries       int64 `json:"entries"`
	Turns         int64 `json:"turns"`
	Receipts      int64 `json:"receipts"`
	Objects       int64 `json:"objects"`
	Findings      int64 `json:"findings"`
	Mended        int64 `json:"mended"`
}

// Finding is one thing that is wrong.
type Finding struct {
	ConversationID string `json:"conversation_id,omitempty"`
	Seq            int64  `json:"seq,omitempty"` // of the entry; 0 when it is about none
	Kind           Kind   `json:"kind"`
	What           string `json:"what"`
	Mend           string `json:"mend"` // what to do
	Mended         bool   `json:"mended,omitempty"`
}

// Kind says what is wrong.
type Kind string

// The kinds of findings.
const (
	BadSequence  Kind = "sequence"   // a gap, a repeat, or an entry in another's place
	BadGroup     Kind = "group"      // entries that the log would not have taken
	BadReference Kind = "reference"  // something names what is not there
	BadCount     Kind = "count"      // a number that is not that of what it counts
	LooseObject  Kind = "loose"      // an object that nothing names
	BadIndex     Kind = "index"      // the index of words or of runs is not that of the log
	BadTurn      Kind = "turn"       // turns that cannot have been
	Unreadable   Kind = "unreadable" // a row that is not what a store writes
	Damaged      Kind = "damaged"    // bytes that changed on disk: the engine's own check or an entry's checksum found them
)

// Check goes through everything and tells found of each finding, in the order of the conversations' ids.
func (c *Checker) Check(ctx context.Context, found func(Finding)) (Checked, error) {
	if c.Loose == 0 {
		c.Loose = 24 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.blobs = map[string]bool{}
	var checked Checked
	tell := func(f Finding) {
		checked.Findings++
		if f.Mended {
			checked.Mended++
		}
		found(f)
	}
	if err := c.integrity(ctx, tell); err != nil {
		return checked, err
	}
	known := map[string]bool{}
	for id, err := range c.ids(ctx, tell) {
		if err != nil {
			return checked, err
		}
		known[id] = true
		if err := c.conversation(ctx, id, &checked, tell); err != nil {
			return checked, fmt.Errorf("check conversation %s: %w", id, err)
		}
		if c.Progress != nil {
			c.Progress(checked)
		}
	}
	if err := c.strangers(ctx, known, &checked); err != nil {
		return checked, err
	}
	return checked, c.tellLoose(ctx, tell)
}

// conversation checks one.
func (c *Checker) conversation(ctx context.Context, id string, checked *Checked, tell func(Finding)) error {
	w := &walk{Checker: c, ctx: ctx, checked: checked, runs: runs{}, needs: map[string]need{}, fences: map[int64]string{}}
	w.tell = func(f Finding) {
		f.ConversationID = id
		tell(f)
	}
	for record, err := range readable(ctx, c.Store, id) {
		if err != nil && !isOfTheStore(ctx, err) {
			w.damaged(err)
			continue
		}
		if err == nil {
			err = w.record(&record)
		}
		if err != nil {
			return err
		}
	}
	if w.record0 == nil && w.unreadable == "" { // it was deleted meanwhile
		return nil
	}
	checked.Conversations++
	if w.unreadable != "" {
		return nil // what depends on what could not be read cannot be judged
	}
	if err := errors.Join(w.end(), w.objects()); err != nil {
		return err
	}
	if err := w.index(); err != nil {
		return err
	}
	return w.runIndex()
}

// isOfTheStore reports whether nothing could be read, rather than something that is there.
func isOfTheStore(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, continuo.ErrClosed)
}

// strangers finds objects of conversations that are not there.
func (c *Checker) strangers(ctx context.Context, known map[string]bool, checked *Checked) error {
	if c.Objects == nil {
		return nil
	}
	for object, err := range c.Objects.Objects(ctx, "") {
		if err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
		id, _ := cutName(object.Name)
		if known[id] || c.Now().Sub(object.ModifiedAt) < c.Loose {
			continue
		}
		if _, err := c.Store.Conversation(ctx, id); err == nil { // it was begun meanwhile
			continue
		}
		checked.Objects++
		c.loose(object, id)
	}
	return nil
}

// loose notes an object that nothing names.
func (c *Checker) loose(object continuo.ObjectInfo, conversationID string) {
	c.unnamed = append(c.unnamed, unnamed{object.Name, Finding{
		ConversationID: conversationID, Kind: LooseObject,
		What: fmt.Sprintf("nothing names the object %s of %d bytes, written at %s", object.Name, object.Size, object.ModifiedAt.UTC().Format(time.RFC3339)),
		Mend: "remove it: continuo store check --mend",
	}})
}

// unnamed is an object that nothing names.
type unnamed struct {
	name    string
	finding Finding
}

// tellLoose tells of the objects that nothing names, and removes them where that is wanted and safe.
func (c *Checker) tellLoose(ctx context.Context, tell func(Finding)) error {
	for _, object := range c.unnamed {
		switch {
		case c.missing > 0:
			object.finding.Mend = "look first why objects are missing that entries name: these may be another store's objects; none is removed"
		case c.Mend:
			if err := c.Objects.DeleteObject(ctx, object.name); err != nil {
				return err
			}
			object.finding.Mended = true
		}
		tell(object.finding)
	}
	return nil
}
