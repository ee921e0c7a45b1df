package start

import (
	"sync"

	continuo "github.com/continuo-log/continuo"
)

// activeTurns are the turns that this process runs, or that wait for their conversation in it.
type activeTurns struct {
	mu    sync.Mutex
	turns map[string]continuo.Turn
}

func (a *activeTurns) add(t continuo.Turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turns == nil {
		a.turns = map[string]continuo.Turn{}
	}
	a.turns[t.ID] = t
}

func (a *activeTurns) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.turns, id)
}

// find returns the id of a turn with the same request.
func (a *activeTurns) find(turn continuo.Turn) (id string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.turns {
		if t.ConversationID == turn.ConversationID && sameRequest(t, turn) {
			return t.ID, true
		}
	}
	return "", false
}
