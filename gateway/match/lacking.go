package match

import (
	"context"

	continuo "github.com/continuo-log/continuo"
)

// Lacking returns the seqs of the entries of Conversation that the client does not have in its history, though the
// conversation continues: of turns that failed. A request that is built from the log leaves them out.
func (m *Match) Lacking(ctx context.Context) ([]int64, error) {
	newest := m.Conversation.LastSeq
	if m.Fork {
		newest = m.At
	}
	if !m.tracked || newest == 0 {
		return nil, nil
	}
	var lacking []int64
	chain, position := m.search.states[0], 0
	for entry, err := range m.search.log.ReadShared(ctx, m.Conversation, continuo.Range{From: 1, To: newest}) {
		if err != nil {
			return nil, err
		}
		next := chain.add(entry)
		if known, ok := m.search.after(position, next.hash); ok || next.hash == chain.hash {
			chain, position = next, max(position, known)
			continue
		}
		if !entry.Hidden {
			lacking = append(lacking, entry.Seq)
		}
	}
	if chain.hash != m.search.states[m.Common].hash {
		return nil, nil // the client has its entries in another form
	}
	return lacking, nil
}
