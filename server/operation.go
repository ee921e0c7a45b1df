package server

import (
	"net/http"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// httpRequest is a request as the source of an operation's input.
type httpRequest struct {
	server *server
	of     api.Operation
	w      http.ResponseWriter
	r      *http.Request
}

func (h httpRequest) RawQuery() string            { return h.r.URL.RawQuery }
func (h httpRequest) Path(name string) string     { return h.r.PathValue(name) }
func (h httpRequest) Header(name string) []string { return h.r.Header.Values(name) }

func (h httpRequest) Body() ([]byte, error) {
	var kinds []string
	for _, media := range h.of.Body {
		kinds = append(kinds, media.Type)
	}
	if h.of.AnyText {
		return h.server.readRaw(h.w, h.r, kinds...)
	}
	return h.server.readBody(h.w, h.r, kinds...)
}

// operation answers a request by an operation: it decodes, runs and encodes.
func (s *server) operation(o api.Operation) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		in, err := o.Decode(httpRequest{s, o, w, r})
		if err != nil {
			return err
		}
		out, err := o.Run(r.Context(), scopeOf(r), in)
		if err != nil {
			return err
		}
		return encode(w, r, o, out)
	}
}

// raw makes the handler of an operation whose input is decoded, and whose answer serve writes itself.
func raw[In any](s *server, serve func(w http.ResponseWriter, r *http.Request, in In) error) func(api.Operation) handler {
	return func(o api.Operation) handler {
		return func(w http.ResponseWriter, r *http.Request) error {
			in, err := o.Decode(httpRequest{s, o, w, r})
			if err != nil {
				return err
			}
			return serve(w, r, *in.(*In))
		}
	}
}

// encode writes an operation's output in the form that its type implements.
func encode(w http.ResponseWriter, r *http.Request, o api.Operation, out any) error {
	status := o.Status(out)
	switch out := out.(type) {
	case api.None:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case api.Stream[continuo.Entry]:
		return streamList(w, out)
	case []byte:
		contentType := o.Answers[0].Media[0].Type
		if strings.HasPrefix(contentType, "text/") {
			contentType += "; charset=utf-8"
		}
		return writeBody(w, status, contentType, out)
	case api.JSONWriter:
		return writeBody(w, status, api.JSON, out.WriteJSON())
	case api.TextWriter:
		if !accepts(r, api.JSON) {
			return writeText(w, out.WriteText())
		}
	}
	return writeJSON(w, status, out)
}

// streamList writes a list item by item. An error of the first one means that nothing has been written.
func streamList[T any](w http.ResponseWriter, list api.Stream[T]) error {
	count := 0
	for item, err := range list.Items {
		var data []byte
		if err == nil {
			data, err = rawjson.Marshal(item)
		}
		switch {
		case err != nil && count == 0:
			return err
		case err != nil:
			panic(http.ErrAbortHandler) // a truncated list must not look complete
		case count == 0:
			w.Header().Set("Content-Type", api.JSON)
			data = append([]byte(`{"data":[`), data...)
		default:
			data = append([]byte(","), data...)
		}
		count++
		if _, err := w.Write(data); err != nil {
			panic(http.ErrAbortHandler) // the client has disconnected
		}
	}
	if count == 0 {
		return writeJSON(w, http.StatusOK, api.List[T]{Data: []T{}})
	}
	rest := rawjson.MustMarshal(struct {
		HasMore    bool    `json:"has_more"`
		NextCursor *string `json:"next_cursor"`
	}{list.Next != nil, list.Next})
	_, _ = w.Write(append(append([]byte(`],`), rest[1:]...), '\n')) // a client that has disconnected is not an error
	return nil
}
