package form

import (
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// auditDetail are the fields of an event of the audit log that no query selects by.
type auditDetail struct {
	Origin    audit.Origin `json:"origin"`
	SessionID string       `json:"session_id,omitempty"`
	UserID    string       `json:"user_id,omitempty"`
	Remote    string       `json:"remote,omitempty"`
	RequestID string       `json:"request_id,omitempty"`
	Target    string       `json:"target,omitempty"`
	Status    int          `json:"status"`
	Count     int64        `json:"count"`
}

// EncodeAudit writes the fields of an event of the audit log that have no column.
func EncodeAudit(e audit.Event) string {
	return string(rawjson.MustMarshal(auditDetail{
		Origin: e.Origin, SessionID: e.SessionID, UserID: e.UserID, Remote: e.Remote, RequestID: e.RequestID, Target: e.Target,
		Status: e.Status, Count: e.Count,
	}))
}

// DecodeAudit reads what EncodeAudit writes.
func DecodeAudit(text string, e *audit.Event) error {
	var d auditDetail
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("event %d of the audit log: %w", e.Position, err)
	}
	e.Origin, e.SessionID, e.UserID, e.Remote, e.RequestID = d.Origin, d.SessionID, d.UserID, d.Remote, d.RequestID
	e.Target, e.Status, e.Count = d.Target, d.Status, d.Count
	return nil
}
