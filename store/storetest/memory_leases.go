package storetest

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

func (m *memory) TakeLease(ctx context.Context, name, owner string, over int64) (continuo.Lease, error) {
	if err := checkMemoryTexts("take a lease", name, owner); err != nil {
		return continuo.Lease{}, err
	}
	if owner == "" {
		return continuo.Lease{}, fmt.Errorf("take a lease: %w: no owner", continuo.ErrInvalid)
	}
	if err := m.begin(ctx); err != nil {
		return continuo.Lease{}, err
	}
	defer m.mu.Unlock()
	if m.leases == nil {
		m.leases = map[string]continuo.Lease{}
	}
	held := m.leases[name]
	switch {
	case held.Owner == owner:
		held.Renewals++
	case held.Fence == 0:
		held = continuo.Lease{Owner: owner, Fence: 1}
	case held.Owner == "", held.Fence == over:
		held = continuo.Lease{Owner: owner, Fence: held.Fence + 1, Renewals: held.Renewals + 1}
	}
	m.leases[name] = held
	return held, nil
}

func (m *memory) EndLease(ctx context.Context, name, owner string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if held := m.leases[name]; held.Owner == owner {
		held.Owner = ""
		m.leases[name] = held
	}
	return nil
}
