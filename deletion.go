package continuo

import (
	"fmt"
	"strconv"
	"strings"
)

// PartDeletion is the PartType of a deletion: a hidden system entry by which a client removed an item of an earlier entry
// from its conversation. The earlier entry stays in the log; no view shows it or its group any more.
const PartDeletion = "deletion"

// DeletionOf returns the deletion of an item, by the client's id of it, of the entry with a seq.
func DeletionOf(seq int64, item string) Entry {
	return Entry{Role: System, Hidden: true, PartType: PartDeletion, Content: Text(fmt.Sprintf("%d %s", seq, item))}
}

// Deletion returns what an entry deletes; ok is false for an entry that is no deletion.
func (e *Entry) Deletion() (seq int64, item string, ok bool) {
	if e.PartType != PartDeletion || e.Role != System || !e.Hidden {
		return 0, "", false
	}
	number, item, _ := strings.Cut(e.Content.String(), " ")
	seq, err := strconv.ParseInt(number, 10, 64)
	return seq, item, err == nil
}
