package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	continuo "github.com/continuo-log/continuo"
)

// showPart shows one part of an entry's content whole, also where the entry has only a placeholder for it. If the entry
// exists but its attachment is lost, the operator has to restore it, and can: the call fails with object_gone, as an
// export does, and not with 410, which clients and caches treat as permanent.
func (s *server) showPart(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	seq, err := numberInPath(r, "seq", 1)
	if err != nil {
		return err
	}
	place, err := numberInPath(r, "n", 0)
	if err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	part, err := s.part(r.Context(), conversation, seq, place)
	if err != nil {
		return err
	}
	body := slices.Concat([]byte(`{"data":`), part.Raw, []byte("}\n")) // the encoder would reformat it, which would change its hash
	return writeBody(w, http.StatusOK, "application/json", body)
}

// part reads the part at an index of an entry's content, from its object where it is stored as one.
func (s *server) part(ctx context.Context, conversation continuo.Conversation, seq, place int64) (continuo.Part, error) {
	for entry, err := range s.engine.Log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return continuo.Part{}, err
		}
		parts := entry.Content.Parts()
		if place >= int64(len(parts)) {
			return continuo.Part{}, fmt.Errorf("part %d of entry %d: %w: its content is %s", place, seq, continuo.ErrNotFound, contentWords(entry.Content))
		}
		at := slices.IndexFunc(entry.Attachments, func(a continuo.Attachment) bool { return int64(a.Part) == place })
		if at < 0 {
			return parts[place], nil
		}
		return s.engine.Log.Attachment(ctx, &entry, entry.Attachments[at])
	}
	return continuo.Part{}, fmt.Errorf("entry %d: %w", seq, continuo.ErrNotFound)
}

// contentWords describes a content that does not have the requested part.
func contentWords(content continuo.Content) string {
	switch {
	case content.IsText():
		return "a text, which is part of the entry"
	case content.IsParts():
		return fmt.Sprintf("a list of %d parts, counted from 0", len(content.Parts()))
	}
	return "null"
}

// numberInPath reads an integer from a request's path.
func numberInPath(r *http.Request, name string, least int64) (int64, error) {
	number, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || number < least || number > maxSeq {
		return 0, refuse(name, "the %s in the path must be a whole number from %d, not %q", name, least, bounded(r.PathValue(name)))
	}
	return number, nil
}
