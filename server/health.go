package server

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// readyLimit is how long the store may take to answer a probe.
const readyLimit = 5 * time.Second

func (s *server) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyLimit)
	defer cancel()
	if err := s.engine.Ready(ctx); err != nil {
		return &problem{
			status: http.StatusServiceUnavailable, kind: serverError, code: "not_ready",
			message: "the store does not answer", cause: fmt.Errorf("ready: %w", err),
		}
	}
	return writeJSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ready"})
}
