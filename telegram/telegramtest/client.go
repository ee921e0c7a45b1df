package telegramtest

import (
	"errors"
	"net/http"
	"net/http/httptest"
)

// Client calls the server without a network.
func (s *Server) Client() *http.Client { return Client(s) }

// Client calls a handler without a network. A call whose context is done ends as one over a network does, and so does
// one that the handler aborts.
func Client(handler http.Handler) *http.Client { return &http.Client{Transport: direct{handler}} }

// direct is a transport that calls a handler.
type direct struct{ handler http.Handler }

var errBroken = errors.New("the connection broke")

func (d direct) RoundTrip(request *http.Request) (response *http.Response, err error) {
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	incoming := request.Clone(request.Context())
	incoming.RequestURI = request.URL.RequestURI()
	if incoming.Body == nil {
		incoming.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	if aborted := serve(d.handler, recorder, incoming); aborted {
		if err := request.Context().Err(); err != nil {
			return nil, err
		}
		return nil, errBroken
	}
	response = recorder.Result() //nolint:bodyclose // the caller's
	response.Request = request
	return response, nil
}

func serve(handler http.Handler, w http.ResponseWriter, r *http.Request) (aborted bool) {
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler { //nolint:errorlint // as net/http does
			aborted = true
		} else if cause != nil {
			panic(cause)
		}
	}()
	handler.ServeHTTP(w, r)
	return false
}
