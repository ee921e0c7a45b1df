package gateway

import (
	"context"
	"sync"
)

// queues let the requests that add to a conversation begin one after another: a request whose conversation has grown
// since it was matched waits there for those before it, and is matched again when it is its turn. The zero value works.
// It is safe for concurrent use.
type queues struct {
	mu     sync.Mutex
	queues map[string]*queue // by the conversation's id
}

// queue is the queue of a conversation.
type queue struct {
	turn  chan struct{} // has a value while a request has its turn
	users int           // that wait or have their turn
}

// enter waits for the turn in a conversation's queue. Leave ends it, and may be called again. The error is the context's.
func (q *queues) enter(ctx context.Context, conversationID string) (leave func(), err error) {
	q.mu.Lock()
	if q.queues == nil {
		q.queues = map[string]*queue{}
	}
	of := q.queues[conversationID]
	if of == nil {
		of = &queue{turn: make(chan struct{}, 1)}
		q.queues[conversationID] = of
	}
	of.users++
	q.mu.Unlock()
	quit := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(q.queues, conversationID)
		}
	}
	select {
	case of.turn <- struct{}{}:
	case <-ctx.Done():
		quit()
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		<-of.turn
		quit()
	}), nil
}

// queued is a request's place in the queue of the conversation that it adds to.
type queued struct {
	queues *queues
	id     string // of the conversation; "" for no place
	leave  func()
}

// enter takes a place in a conversation's queue, in exchange for the one in another.
func (q *queued) enter(ctx context.Context, conversationID string) (err error) {
	if conversationID == "" || q.id == conversationID {
		return nil
	}
	q.end()
	leave, err := q.queues.enter(ctx, conversationID)
	if err == nil {
		q.id, q.leave = conversationID, leave
	}
	return err
}

// end gives the place up.
func (q *queued) end() {
	if q.leave != nil {
		q.leave()
	}
	q.id, q.leave = "", nil
}
