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
		if body, ok := out.([]byte); ok {
			return writeBody(w, o.Status(out), o.Answers[0].Media[0].Type, body)
		}
		return writeJSON(w, o.Status(out), out)
	}
}

// raw is the route of an operation whose answer the server writes itself, such as a stream: serve gets the decoded input.
func raw[In any](s *server, id string, serve func(http.ResponseWriter, *http.Request, In) error) route {
	o := s.find(id)
	return route{o.Method, o.Path, o.Summary, func(w http.ResponseWriter, r *http.Request) error {
		in, err := o.Decode(httpRequest{s, w, r})
		if err != nil {
			return err
		}
		return serve(w, r, *in.(*In))
	}}
}
