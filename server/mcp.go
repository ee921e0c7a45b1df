package server

import (
	"fmt"
	"net/http"

	"github.com/continuo-log/continuo/api"
)

// serveMCP passes a request to the server of the Model Context Protocol, whose answers have that protocol's form and
// not that of the rest of this API.
func (s *server) serveMCP(w http.ResponseWriter, r *http.Request, _ api.Nothing) error {
	if s.options.MCP == nil {
		return &api.Problem{
			Status: http.StatusNotFound, Type: api.NotFound, Code: "not_found",
			Message: fmt.Sprintf("there is nothing at %s: this server does not speak MCP", r.URL.Path),
		}
	}
	s.options.MCP(scopeOf(r)).ServeHTTP(w, r)
	return nil
}
