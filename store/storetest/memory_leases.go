package storetest

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

type memoryLease struct {
	continuo.Lease
	until time.Time
}

func (m *memory) TakeLease(ctx context.Context, name, owner string, over int64, length time.Duration) (continuo.Lease, error) {
	if err := checkMemoryTexts("take a lease", name, owner); err != nil {
		return continuo.Lease{}, err
	}
	if err := m.begin(ctx); err != nil {
		return continuo.Lease{}, err
	}
	defer m.mu.Unlock()
	if m.leases == nil {
		m.leases = map[string]memoryLease{}
	}
	now, held := memoryNow(), m.leases[name]
	if held.Owner != owner && held.Fence != over && now.Before(held.until) {
		return held.Lease, nil
	}
	if held.Fence == 0 || held.Owner != owner {
		held.Lease = continuo.Lease{Owner: owner, Fence: held.Fence + 1}
	}
	held.until = now.Add(length)
	m.leases[name] = held
	return held.Lease, nil
}

func (m *memory) EndLease(ctx context.Context, name, owner string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if held := m.leases[name]; held.Owner == owner {
		held.until = memoryNow()
		m.leases[name] = held
	}
	return nil
}
