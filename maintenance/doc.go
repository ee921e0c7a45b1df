// Package maintenance maintains stores: it copies one into another, checks a store's contents, and archives and restores
// conversations.
//
// All three read the stored data as [Record]s, a page at a time, whatever the engine. An archive is an object
// of JSON lines, gzipped: a header, one record per line, and a trailer with the number of records and the SHA-256 of
// all lines before it.
//
// Pitfalls: a copy and a check may run while the store is used; a copy compares changed conversations again, a check
// reports the state that it read. For a final pass that copies everything, nothing may write to the source.
package maintenance

import (
	"context"
	"iter"
)

// pageSize is how many records are read per query.
const pageSize = 256

// records yields all records of a conversation.
func records(ctx context.Context, store RecordStore, id string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for after := (RecordPosition{}); ; {
			page, err := store.Records(ctx, id, after, pageSize)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if len(page) == 0 {
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

// conversationIDs yields the ids of all conversations of a store.
func conversationIDs(ctx context.Context, store RecordStore) iter.Seq2[string, error] {
	return pages(ctx, "", store.ConversationIDs)
}

// pages yields the ids of a list above after, a page at a time.
func pages(ctx context.Context, after string, list func(ctx context.Context, after string, limit int) ([]string, error)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			page, err := list(ctx, after, 1000)
			if err != nil {
				yield("", err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, id := range page {
				if !yield(id, nil) {
					return
				}
				after = id
			}
		}
	}
}
