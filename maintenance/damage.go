package maintenance

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
)

// selfChecking is a store whose engine can check its own files, as both stores of this project can.
type selfChecking interface {
	// CheckIntegrity makes the engine verify its tables and indexes, and calls found for each fault. It returns an
	// error only if the check could not run.
	CheckIntegrity(ctx context.Context, found func(what string)) error
	// EntryOwners lists the ids of conversations that have entries of their own, above after, in ascending order. It
	// does not read the table of conversations, which may be damaged.
	EntryOwners(ctx context.Context, after string, limit int) ([]string, error)
}

// restoreDatabase is how to fix damage that the engine reports.
const restoreDatabase = "restore a backup of the database; copy what can be read with continuo export, or sqlite3's .recover"

// integrity reports what the engine finds in its own files.
func (c *Checker) integrity(ctx context.Context, report func(Finding)) error {
	store, ok := c.Store.(selfChecking)
	if !ok {
		return nil
	}
	err := store.CheckIntegrity(ctx, func(what string) {
		report(Finding{Kind: Damaged, What: what, Fix: restoreDatabase})
	})
	if err != nil {
		return fmt.Errorf("check the database's own structure: %w", err)
	}
	return nil
}

// ids yields the ids of all conversations. After a damaged part of their list, the ids come from the entries.
func (c *Checker) ids(ctx context.Context, report func(Finding)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for id, err := range conversationIDs(ctx, c.Store) {
			store, ok := c.Store.(selfChecking)
			if err != nil && ok && !isOfTheStore(ctx, err) {
				report(Finding{Kind: Unreadable, What: fmt.Sprintf("the list of conversations after %q: %v; the check continues with those that have entries", last, err), Fix: restoreDatabase})
				pages(ctx, last, store.EntryOwners)(yield)
				return
			}
			if !yield(id, err) || err != nil {
				return
			}
			last = id
		}
	}
}

// readable yields the readable records of a conversation. Where a record is damaged, it yields the error and continues
// with the next kind of records.
func readable(ctx context.Context, store RecordStore, id string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		after, limit := RecordPosition{}, pageSize
		for {
			page, err := store.Records(ctx, id, after, limit)
			switch {
			case err != nil && !isOfTheStore(ctx, err) && limit > 1:
				limit = 1 // up to the damage
				continue
			case err != nil:
				if !yield(Record{}, err) || isOfTheStore(ctx, err) || after.Kind >= RecordPrefix {
					return
				}
				after = endOfKind(max(after.Kind, RecordConversation), after)
				continue
			case len(page) == 0:
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
				after = page[i].Position()
			}
		}
	}
}

// endOfKind is the position after all records of a kind; if at is that position already, the one after the next kind.
func endOfKind(kind RecordKind, at RecordPosition) RecordPosition {
	end := RecordPosition{Kind: kind, Seq: math.MaxInt64 - 1, Key: strings.Repeat("\U0010FFFF", 8)}
	if at == end {
		end.Kind++
	}
	return end
}
