package engine

import "context"

// Draining is a context that ends when the engine begins nothing more, so that goroutines that only wait or watch can
// end.
func (e *Engine) Draining() context.Context { return e.draining }
