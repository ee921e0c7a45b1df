package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
)

func (m *memory) AddAudit(ctx context.Context, events []audit.Event) error {
	for _, e := range events {
		if err := checkMemoryTexts("add to the audit log", e.ProjectID, e.KeyID, e.Operation, e.ConversationID); err != nil {
			return err
		}
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, e := range events {
		m.audited++
		e.Position = m.audited
		m.audit = append(m.audit, e)
	}
	return nil
}

func (m *memory) AuditEvents(ctx context.Context, query audit.Query) (found []audit.Event, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("read the audit log: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, e := range m.audit {
		if e.Position > query.After && (query.ProjectID == "" || e.ProjectID == query.ProjectID) && (query.KeyID == nil || e.KeyID == *query.KeyID) &&
			(query.ConversationID == "" || e.ConversationID == query.ConversationID) && (query.Operation == "" || e.Operation == query.Operation) &&
			!e.At.Before(query.From) && (query.To.IsZero() || e.At.Before(query.To)) {
			found = append(found, e)
		}
	}
	if query.Newest {
		return found[max(0, len(found)-query.Limit):], nil
	}
	return found[:min(len(found), query.Limit)], nil
}

func (m *memory) LastAudit(ctx context.Context) (int64, error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	return m.audited, nil
}

func (m *memory) PruneAudit(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(m.audit), func(e audit.Event) bool {
		old := e.At.Before(before) && removed < limit
		if old {
			removed++
		}
		return old
	})
	m.audit = kept
	return removed, nil
}
