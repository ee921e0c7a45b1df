package server

import (
	"fmt"
	"net/http"
)

// speakMCP hands a request on to the server of the Model Context Protocol. What that answers is as the protocol has
// it, not as the rest of this API.
func (s *server) speakMCP(w http.ResponseWriter, r *http.Request) error {
	if s.options.MCP == nil {
		return &problem{
			status: http.StatusNotFound, kind: notFound, code: "not_found",
			message: fmt.Sprintf("there is nothing at %s: this server does not speak MCP", r.URL.Path),
		}
	}
	s.options.MCP(scopeOf(r)).ServeHTTP(w, r)
	return nil
}
