package maintenance

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Checker looks for faults in a store: gaps and repeats, groups that cannot be shown, references to missing things,
// wrong counts, indexes that differ from the entries, and objects that nothing refers to. It may run while the store is
// used. It is used once.
type Checker struct {
	Store Store
	// Objects is checked with the store. Default: objects are not checked.
	Objects continuo.ObjectStore
	// Counter counts the tokens of entries again that were counted with it. Default: tokens are not counted again.
	Counter continuo.Counter
	// Repair removes objects that nothing refers to, and has indexes of text and of runs rebuilt that differ from the
	// entries. All other faults are for a person to decide. If objects are missing that entries refer to, none is
	// removed: the loose ones may be those of another store.
	Repair bool
	// Loose is how old an object that nothing refers to must be to be reported: a younger one may belong to an entry
	// that is about to be appended. Default 24 h.
	Loose time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Progress is called after each conversation. Default none.
	Progress func(Checked)

	blobs   map[string]bool // envelopes that were looked up
	missing int             // missing objects that entries refer to
	unnamed []unnamed
}

// Checked counts what was checked.
type Checked struct {
	Conversations int64 `json:"conversations"`
	Entries       int64 `json:"entries"`
	Turns         int64 `json:"turns"`
	Receipts      int64 `json:"receipts"`
	Objects       int64 `json:"objects"`
	Findings      int64 `json:"findings"`
	Repaired      int64 `json:"repaired"`
}

// Finding is one fault.
type Finding struct {
	ConversationID string `json:"conversation_id,omitempty"`
	Seq            int64  `json:"seq,omitempty"` // of the entry; 0 for none
	Kind           Kind   `json:"kind"`
	What           string `json:"what"`
	Fix            string `json:"fix"` // how to fix it
	Repaired       bool   `json:"repaired,omitempty"`
}

// Kind is the kind of a fault.
type Kind string

// The kinds of findings.
const (
	BadSequence  Kind = "sequence"   // a gap, a repeat, or an entry at another's position
	BadGroup     Kind = "group"      // entries that the log would have refused
	BadReference Kind = "reference"  // a reference to something that is missing
	BadCount     Kind = "count"      // a count that differs from what it counts
	LooseObject  Kind = "loose"      // an object that nothing refers to
	BadIndex     Kind = "index"      // the index of text or of runs differs from the log
	BadTurn      Kind = "turn"       // an impossible state of turns
	Unreadable   Kind = "unreadable" // a row that no store writes
	Damaged      Kind = "damaged"    // bytes that changed on disk, found by the engine's own check or by an entry's checksum
)

// Check checks everything and calls found for each finding, in the order of the conversations' ids.
func (c *Checker) Check(ctx context.Context, found func(Finding)) (Checked, error) {
	if c.Loose == 0 {
		c.Loose = 24 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.blobs = map[string]bool{}
	var checked Checked
	report := func(f Finding) {
		checked.Findings++
		if f.Repaired {
			checked.Repaired++
		}
		found(f)
	}
	if err := c.integrity(ctx, report); err != nil {
		return checked, err
	}
	known := map[string]bool{}
	for id, err := range c.ids(ctx, report) {
		if err != nil {
			return checked, err
		}
		known[id] = true
		if err := c.conversation(ctx, id, &checked, report); err != nil {
			return checked, fmt.Errorf("check conversation %s: %w", id, err)
		}
		if c.Progress != nil {
			c.Progress(checked)
		}
	}
	if err := c.strangers(ctx, known, &checked); err != nil {
		return checked, err
	}
	return checked, c.checkUnreferenced(ctx, report)
}

// conversation checks one.
func (c *Checker) conversation(ctx context.Context, id string, checked *Checked, report func(Finding)) error {
	w := &walk{Checker: c, ctx: ctx, checked: checked, runs: runs{}, needs: map[string]need{}, fences: map[int64]string{}}
	w.emit = func(f Finding) {
		f.ConversationID = id
		report(f)
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
	if w.record0 == nil && w.unreadable == "" { // deleted in the meantime
		return nil
	}
	checked.Conversations++
	if w.unreadable != "" {
		return nil // what depends on unreadable records cannot be checked
	}
	if err := errors.Join(w.end(), w.objects()); err != nil {
		return err
	}
	if err := w.index(); err != nil {
		return err
	}
	return w.runIndex()
}

// isOfTheStore reports whether nothing can be read from the store, rather than one damaged record.
func isOfTheStore(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, continuo.ErrClosed)
}

// strangers finds objects of conversations that do not exist.
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
		if _, err := c.Store.Conversation(ctx, id); err == nil { // begun in the meantime
			continue
		}
		checked.Objects++
		c.loose(object, id)
	}
	return nil
}

// loose records an object that nothing refers to.
func (c *Checker) loose(object continuo.ObjectInfo, conversationID string) {
	c.unnamed = append(c.unnamed, unnamed{object.Name, Finding{
		ConversationID: conversationID, Kind: LooseObject,
		What: fmt.Sprintf("nothing names the object %s of %d bytes, written at %s", object.Name, object.Size, object.ModifiedAt.UTC().Format(time.RFC3339)),
		Fix:  "remove it: continuo store check --repair",
	}})
}

// unnamed is an object that nothing refers to.
type unnamed struct {
	name    string
	finding Finding
}

// checkUnreferenced reports the objects that nothing refers to, and removes them if that is wanted and safe.
func (c *Checker) checkUnreferenced(ctx context.Context, report func(Finding)) error {
	for _, object := range c.unnamed {
		switch {
		case c.missing > 0:
			object.finding.Fix = "look first why objects are missing that entries name: these may be another store's objects; none is removed"
		case c.Repair:
			if err := c.Objects.DeleteObject(ctx, object.name); err != nil {
				return err
			}
			object.finding.Repaired = true
		}
		report(object.finding)
	}
	return nil
}
