package server

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/continuo-log/continuo/api"
)

// query is the query of a request: all parameters are known, and none is repeated.
type query struct{ values url.Values }

// parseQuery reads a request's query and refuses parameters that are not among the known ones.
func parseQuery(r *http.Request, known ...string) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, refuse("", "the query cannot be read: %s", err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return query{}, refuse(name, "unknown query parameter %q%s", name, suggestion(name, known))
		case len(values[name]) > 1:
			return query{}, refuse(name, "the query parameter %s comes twice", name)
		case !utf8.ValidString(values[name][0]):
			return query{}, refuse(name, "the query parameter %s is not valid UTF-8", name)
		}
	}
	return query{values}, nil
}

// writeCursor encodes a position in a list.
var writeCursor = api.WriteCursor
