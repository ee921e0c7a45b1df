// Package form has what the store engines share: the stored form of a turn's events and of labels, the
// checksums of entries, the effect of put records on the index of runs, and numbered migrations.
package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/maintenance"
)

// EventPageBytes is about how many bytes of stored events one read returns.
const EventPageBytes = 256 << 10

// EncodeEvents writes events as one JSON list of alternating ids and data: [1, {…}, 2, {…}].
func EncodeEvents(events []continuo.TurnEvent) (string, error) {
	body, last := []byte{'['}, int64(0)
	for i, event := range events {
		if event.ID <= last {
			return "", fmt.Errorf("event %d after event %d", event.ID, last)
		}
		last = event.ID
		// Text around the object would be lost.
		if data := event.Data; !json.Valid(data) || data[0] != '{' || data[len(data)-1] != '}' {
			return "", fmt.Errorf("the data of event %d is not a JSON object", event.ID)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(strconv.AppendInt(body, event.ID, 10), ',')
		body = append(body, event.Data...)
	}
	body = append(body, ']')
	if !json.Valid(body) { // encoding/json limits the nesting depth, and the list adds one level
		return "", errors.New("the data of an event is nested too deeply")
	}
	return string(body), nil
}

// DecodeEvents appends the events with ids above after from the output of EncodeEvents.
func DecodeEvents(events []continuo.TurnEvent, body []byte, after int64) ([]continuo.TurnEvent, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(parts); i += 2 {
		id, err := strconv.ParseInt(string(parts[i]), 10, 64)
		if err != nil {
			return nil, err
		}
		if id > after {
			events = append(events, continuo.TurnEvent{ID: id, Data: parts[i+1]})
		}
	}
	return events, nil
}

// Labels writes the labels of metadata as a JSON object with its members in order; nil when there are none.
func Labels(metadata json.RawMessage) []byte {
	labels := continuo.LabelsOf(metadata)
	if labels == nil {
		return nil
	}
	return rawjson.MustMarshal(labels)
}

// EntriesOf returns the entries among records, and whether a conversation's own record is among them.
func EntriesOf(records []maintenance.Record) (entries []continuo.Entry, own bool) {
	for i := range records {
		own = own || records[i].Conversation != nil
		if records[i].Entry != nil {
			entries = append(entries, *records[i].Entry)
		}
	}
	return entries, own
}

// Follow reports whether the seqs of entries follow after without a gap.
func Follow(entries []continuo.Entry, after int64) bool {
	for i := range entries {
		if entries[i].Seq <= after {
			return false
		}
		after = entries[i].Seq
	}
	return true
}

// Migrations returns the texts of the files migrations/NNNN_what.sql in the order of their numbers, which
// begin at 1 without a gap.
func Migrations(files fs.ReadFileFS) ([]string, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	texts := make([]string, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		if got, err := strconv.Atoi(number); err != nil || got != i+1 {
			return nil, fmt.Errorf("migration %s must have the number %04d", name, i+1)
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	return texts, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C of an entry's stored body.
func Checksum(body []byte) int64 { return int64(crc32.Checksum(body, castagnoli)) }

// Mark returns the checksum to store with a body: one that does not match for a damaged entry.
func Mark(checksum int64, damaged bool) int64 {
	if damaged {
		return checksum ^ 1
	}
	return checksum
}
