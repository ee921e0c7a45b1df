package engine

import "context"

// Draining is done when nothing may begin any more, so that what only waits or watches can end.
func (e *Engine) Draining() context.Context { return e.draining }
