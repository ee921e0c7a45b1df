package server

import (
	"net/http"

	"github.com/continuo-log/continuo/api"
)

// httpRequest is a request as the source of an operation's input.
type httpRequest struct {
	server *server
	w      http.ResponseWriter
	r      *http.Request
}

func (h httpRequest) RawQuery() string            { return h.r.URL.RawQuery }
func (h httpRequest) Path(name string) string     { return h.r.PathValue(name) }
func (h httpRequest) Header(name string) []string { return h.r.Header.Values(name) }
func (h httpRequest) Body() ([]byte, error)       { return h.server.readBody(h.w, h.r) }

// operation answers a request by an operation: it decodes, runs and encodes.
func (s *server) operation(o api.Operation) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		in, err := o.Decode(httpRequest{s, w, r})
		if err != nil {
			return err
		}
		out, err := o.Run(r.Context(), scopeOf(r), in)
		if err != nil {
			return err
		}
		if _, none := out.(api.None); none {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return writeJSON(w, o.Status(out), out)
	}
}
