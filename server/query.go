package server

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/api"
)

// query is the query of a request: all parameters are known, and none is repeated.
type query struct{ values url.Values }

// metadataParams is the prefix of the parameters metadata.NAME: those of a list or a search that filters by metadata.
const metadataParams = "metadata."

// parseQuery reads a request's query and refuses parameters that are not among the known ones.
func parseQuery(r *http.Request, known ...string) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, refuse("", "the query cannot be read: %s", err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name) && !(slices.Contains(known, metadataParams) && strings.HasPrefix(name, metadataParams)):
			return query{}, refuse(name, "unknown query parameter %q%s", name, suggestion(name, known))
		case len(values[name]) > 1:
			return query{}, refuse(name, "the query parameter %s comes twice", name)
		case !utf8.ValidString(values[name][0]):
			return query{}, refuse(name, "the query parameter %s is not valid UTF-8", name)
		}
	}
	return query{values}, nil
}

// has reports whether a parameter was given.
func (q query) has(name string) bool { return q.values.Has(name) }

// text returns a parameter, "" when it was not given.
func (q query) text(name string) string { return q.values.Get(name) }

// whole returns an integer parameter between two bounds, or the default without.
func (q query) whole(name string, least, most, without int64) (int64, error) {
	if !q.has(name) {
		return without, nil
	}
	number, err := strconv.ParseInt(q.text(name), 10, 64)
	if err != nil || number < least || number > most {
		return 0, refuse(name, "%s must be a whole number from %d to %d, not %q", name, least, most, q.text(name))
	}
	return number, nil
}

// maxSeq is more than the number of entries of any conversation; it bounds numbers in a query.
const maxSeq = 1 << 53

// cursor decodes the parameter cursor, which writeCursor wrote, into a value.
func (q query) cursor(into any) error {
	data, err := base64.RawURLEncoding.DecodeString(q.text("cursor"))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return refuse("cursor", "the cursor is none that this list gave out")
	}
	return nil
}

// writeCursor encodes a position in a list.
var writeCursor = api.WriteCursor
