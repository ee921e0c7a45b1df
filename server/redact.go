package server

import (
	"net/http"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// maxReason bounds the reason of a redaction, in Unicode characters.
const maxReason = 500

// redactRequest says what is to be removed: the entry Seq, or those from From up to To.
type redactRequest struct {
	Seq    *int64  `json:"seq"`
	From   *int64  `json:"from"`
	To     *int64  `json:"to"` // nil: the newest
	Reason *string `json:"reason"`
	Tools  bool    `json:"tools"` // the names of tools too
}

// seqs returns the first and the last seq; the last is 0 for the newest.
func (r *redactRequest) seqs() (from, to int64, err error) {
	switch {
	case r.Seq != nil && (r.From != nil || r.To != nil):
		return 0, 0, refuse("seq", "give seq, or from and to, not both")
	case r.Seq != nil:
		from, to = *r.Seq, *r.Seq
	case r.From == nil:
		return 0, 0, refuse("seq", "say which entries: give seq, or from, or from and to")
	default:
		from = *r.From
		if r.To != nil {
			to = max(*r.To, 1)
		}
	}
	return from, to, nil
}

func (s *server) redactEntries(w http.ResponseWriter, r *http.Request) error {
	var request redactRequest
	if err := s.readOptional(w, r, &request); err != nil {
		return err
	}
	from, to, err := request.seqs()
	if err != nil {
		return err
	}
	reason := ""
	if request.Reason != nil {
		reason = *request.Reason
	}
	if utf8.RuneCountInString(reason) > maxReason {
		return refuse("reason", "reason must have at most %d characters", maxReason)
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	redacted, err := s.engine.Log.RedactWith(r.Context(), conversation, continuo.RedactRequest{From: from, To: to, Reason: reason, Tools: request.Tools})
	if err != nil {
		return err
	}
	seqs := make([]int64, len(redacted))
	for i := range redacted {
		seqs[i] = redacted[i].Seq
	}
	return writeJSON(w, http.StatusOK, struct {
		ConversationID string  `json:"conversation_id"`
		Redacted       []int64 `json:"redacted"`
		// Residue says that the store's write-ahead log still contains the redacted text, until no reader needs that log.
		Residue bool `json:"residue"`
	}{conversation.ID, seqs, s.engine.Log.HasResidue()})
}
