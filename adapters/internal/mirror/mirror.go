// Package mirror keeps the messages of another framework in a log: as entries that models and people can read, with the
// framework's own form beside them, so that it gets back what it gave.
//
// A message that breaks a rule of the log at its place (a user's message between a call and its result) becomes a hidden
// record: nothing is lost, and no request is rendered from it.
package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Key is a conversation's key for names of another framework, which may have any characters: a prefix and a hash.
func Key(prefix string, names ...string) string {
	hash := sha256.New()
	for _, name := range names {
		fmt.Fprintf(hash, "%d:%s", len(name), name)
	}
	return prefix + ":" + hex.EncodeToString(hash.Sum(nil)[:20])
}

// Message is a message of another framework.
type Message struct {
	Vendor  string          // the framework's name
	Own     json.RawMessage // in the framework's form
	Entries []continuo.Entry
	// Plain says that the entries say all of it, so that its own form need not be kept beside them.
	Plain bool
}

// Append appends a message, all of its entries or none.
func Append(ctx context.Context, log *continuo.Log, conversationID string, m Message) ([]continuo.Entry, error) {
	rule := continuo.RuleNullContent
	if len(m.Entries) > 0 {
		if !m.Plain {
			m.Entries[0].Vendor = map[string]json.RawMessage{m.Vendor: m.Own}
		}
		stored, err := log.Append(ctx, conversationID, m.Entries, continuo.AppendOptions{})
		var refused *continuo.RuleError
		if !errors.As(err, &refused) {
			return stored, err
		}
		rule = refused.Rule
	}
	record := m.Record()
	record.Repairs = []string{string(rule)} // it may stand between a call and its result
	return log.Append(ctx, conversationID, []continuo.Entry{record}, continuo.AppendOptions{Repaired: true})
}

// Record is a hidden entry that has a message in the framework's form, and the text of its entries.
func (m Message) Record() continuo.Entry {
	var texts []string
	record := continuo.Entry{Role: continuo.System, PartType: continuo.PartRecord, Hidden: true, Vendor: map[string]json.RawMessage{m.Vendor: m.Own}}
	for _, entry := range m.Entries {
		record.CreatedAt = entry.CreatedAt
		if text := entry.Content.String(); text != "" {
			texts = append(texts, text)
		}
	}
	record.Content = continuo.Text(strings.Join(texts, "\n"))
	return record
}
