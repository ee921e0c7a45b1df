package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Request is what an input is read from.
type Request interface {
	RawQuery() string
	Path(name string) string
	Header(name string) []string
	// Body is the request's body; nil for none.
	Body() ([]byte, error)
}

// Input is one member of an operation's input: a field of its input type with one of the tags path, query, header and
// json, which name it. Further tags limit its value:
//
//	minimum, maximum  bounds of an integer
//	maxLength         of a string, in Unicode characters
//	enum              the known values, with commas between them
//	default           the value where the request has none
//	arg               its name among the arguments of a call ([Arguments]), where that is another one
//	doc               more keywords of the schema, such as doc:"minLength=1", which the type or a method Check holds
//
// A query parameter whose name ends in a dot is a prefix: a map[string]string of all parameters that begin with it. A
// field with the tag body:"raw" takes the whole body as it is.
type Input struct {
	In, Name string
	Field    reflect.StructField
	Owner    reflect.Type // the struct that declares the field
	Enum     []string
	Default  string

	index    []int
	least    int64
	most     int64
	maxRunes int
}

// Where inputs are.
const (
	InPath   = "path"
	InQuery  = "query"
	InHeader = "header"
	InBody   = "json"
	InRaw    = "body"
)

// binding says how a type is read from a request. It is made once per type, at the start.
type binding struct {
	of      reflect.Type
	inputs  []Input
	queries []string // the names of query parameters, in order
	members []string // the names of the members of the body, in order
	raw     []int    // the field for the whole body; nil for none
	empty   bool     // the body has no members, but may be there
	checks  [][]int  // the embedded structs with a method Check, and the type itself as an empty index
	// required says that there must be a body, because a member is required.
	required bool
}

// checker is implemented by inputs that check what tags cannot say.
type checker interface{ Check() error }

// headerValue is implemented by inputs that are read from all values of a header.
type headerValue interface {
	fromHeader(name string, values []string) error
}

var checkerType = reflect.TypeFor[checker]()

func bind(t reflect.Type) *binding {
	b := &binding{of: t}
	b.add(t, nil)
	return b
}

func (b *binding) add(t reflect.Type, index []int) {
	if t.Kind() != reflect.Struct {
		panic("api: " + t.String() + " is no struct")
	}
	for i := range t.NumField() {
		field := t.Field(i)
		at := append(slices.Clone(index), i)
		if field.Anonymous {
			b.empty = b.empty || field.Type == reflect.TypeFor[EmptyBody]()
			b.add(field.Type, at)
			continue
		}
		if field.IsExported() && field.Tag.Get(InBody) != "-" {
			b.addField(t, field, at)
		}
	}
	if reflect.PointerTo(t).Implements(checkerType) {
		b.checks = append(b.checks, index)
	}
}

func (b *binding) addField(owner reflect.Type, field reflect.StructField, index []int) {
	for _, in := range []string{InPath, InQuery, InHeader, InBody, InRaw} {
		tag, ok := field.Tag.Lookup(in)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
		input := Input{In: in, Name: name, Field: field, Owner: owner, index: index, Default: field.Tag.Get("default")}
		input.limits()
		switch in {
		case InRaw:
			b.raw = index
			return
		case InQuery:
			b.queries = append(b.queries, name)
		case InBody:
			b.members = append(b.members, name)
			b.required = b.required || !strings.Contains(tag, ",omit")
		}
		b.inputs = append(b.inputs, input)
		return
	}
	panic("api: " + b.of.String() + "." + field.Name + " has no tag that says where it comes from")
}

// limits reads the tags of an input.
func (i *Input) limits() {
	number := func(tag string, without int64) int64 {
		text, ok := i.Field.Tag.Lookup(tag)
		if !ok {
			return without
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic("api: " + i.Name + ": the tag " + tag + " is no number")
		}
		return value
	}
	most := int64(maxSeq)
	if kind := deref(i.Field.Type).Kind(); kind == reflect.Int {
		most = maxCount
	}
	i.least, i.most, i.maxRunes = number("minimum", 0), number("maximum", most), int(number("maxLength", 0))
	if names := i.Field.Tag.Get("enum"); names != "" {
		i.Enum = strings.Split(names, ",")
	}
}

// maxSeq is more than the number of entries of any conversation; it bounds numbers in a query.
const maxSeq = 1 << 53

// maxCount bounds figures that are counts of messages, characters or tokens.
const maxCount = 1<<31 - 1

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// decode reads a request: its query first, then the path, the headers and the body.
func (b *binding) decode(r Request) (any, error) {
	query, err := parseQuery(r.RawQuery(), b.queries)
	if err != nil {
		return nil, err
	}
	into := reflect.New(b.of)
	for _, input := range b.inputs {
		if err := input.read(r, query, into.Elem().FieldByIndex(input.index)); err != nil {
			return nil, err
		}
	}
	if err := b.decodeBody(r, into.Elem()); err != nil {
		return nil, err
	}
	return into.Interface(), b.check(into.Elem())
}

// check checks what tags cannot say.
func (b *binding) check(into reflect.Value) error {
	for _, index := range b.checks {
		if err := into.FieldByIndex(index).Addr().Interface().(checker).Check(); err != nil {
			return err
		}
	}
	return nil
}

// parseQuery reads a query and refuses parameters that are not among the known ones.
func parseQuery(raw string, known []string) (url.Values, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, Refuse("", "the query cannot be read: %s", err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		isKnown := func(k string) bool { return k == name || strings.HasSuffix(k, ".") && strings.HasPrefix(name, k) }
		switch {
		case !slices.ContainsFunc(known, isKnown):
			return nil, Refuse(name, "unknown query parameter %q%s", name, suggestion(name, known))
		case len(values[name]) > 1:
			return nil, Refuse(name, "the query parameter %s comes twice", name)
		case !utf8.ValidString(values[name][0]):
			return nil, Refuse(name, "the query parameter %s is not valid UTF-8", name)
		}
	}
	return values, nil
}

// read sets a field to the value that a request has outside of its body.
func (i *Input) read(r Request, query url.Values, field reflect.Value) error {
	switch i.In {
	case InPath:
		return i.set(field, r.Path(i.Name))
	case InHeader:
		values := r.Header(i.Name)
		if h, ok := field.Addr().Interface().(headerValue); ok {
			return h.fromHeader(i.Name, values)
		}
		if len(values) > 0 && values[0] != "" {
			return i.set(field, values[0])
		}
	case InQuery:
		switch {
		case strings.HasSuffix(i.Name, "."):
			i.setPrefixed(field, query)
		case query.Has(i.Name):
			return i.set(field, query.Get(i.Name))
		case i.Default != "":
			return i.set(field, i.Default)
		}
	}
	return nil
}

// setPrefixed sets a map to all parameters with a prefix, by the rest of their names.
func (i *Input) setPrefixed(field reflect.Value, query url.Values) {
	for name := range query {
		if rest, ok := strings.CutPrefix(name, i.Name); ok {
			if field.IsNil() {
				field.Set(reflect.MakeMap(field.Type()))
			}
			field.SetMapIndex(reflect.ValueOf(rest), reflect.ValueOf(query.Get(name)))
		}
	}
}

// set parses a text into a field.
func (i *Input) set(field reflect.Value, text string) error {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
		return i.checkText(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return Refuse(i.Name, "%s must be true or false, not %q", i.Name, text)
		}
		field.SetBool(text == "true")
	default:
		number, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err == nil && number >= i.least && number <= i.most:
			field.SetInt(number)
		case i.In == InPath:
			return Refuse(i.Name, "the %s in the path must be a whole number from %d, not %q", i.Name, i.least, Bounded(text))
		default:
			return Refuse(i.Name, "%s must be a whole number from %d to %d, not %q", i.Name, i.least, i.most, text)
		}
	}
	return nil
}

// checkText checks a string against the limits of the input.
func (i *Input) checkText(text string) error {
	if i.maxRunes > 0 && utf8.RuneCountInString(text) > i.maxRunes {
		return Refuse(i.Name, "%s must have at most %d characters", i.Name, i.maxRunes)
	}
	if len(i.Enum) == 0 || slices.Contains(i.Enum, text) {
		return nil
	}
	if text == "" && i.Field.Type.Kind() == reflect.Pointer {
		return Refuse(i.Name, "%s must be one of %s", i.Name, joined(i.Enum))
	}
	if i.In == InQuery && len(i.Enum) == 2 {
		return Refuse(i.Name, "%s must be %s or %s, not %q", i.Name, i.Enum[0], i.Enum[1], text)
	}
	return oneOf(i.Name, text, i.Enum...)
}

// decodeBody reads the members of the body, which may be absent, and checks those that are strings.
func (b *binding) decodeBody(r Request, into reflect.Value) error {
	if b.raw == nil && len(b.members) == 0 && !b.empty {
		return nil
	}
	body, err := r.Body()
	switch {
	case err != nil:
		return err
	case b.raw != nil:
		into.FieldByIndex(b.raw).SetBytes(body)
		return nil
	case body == nil && !b.required:
		return nil
	}
	if err := eachMember(body, func(name string, value json.RawMessage) error { return b.decodeMember(into, name, value) }); err != nil {
		return err
	}
	for _, input := range b.inputs {
		field := into.FieldByIndex(input.index)
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if input.In == InBody && field.IsValid() && field.Kind() == reflect.String {
			if err := input.checkText(field.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *binding) decodeMember(into reflect.Value, name string, value json.RawMessage) error {
	at := slices.IndexFunc(b.inputs, func(i Input) bool { return i.In == InBody && i.Name == name })
	if at < 0 {
		return Refuse(name, "unknown field %q%s", name, suggestion(name, b.members))
	}
	if err := json.Unmarshal(value, into.FieldByIndex(b.inputs[at].index).Addr().Interface()); err != nil {
		return wrongValue(name, err)
	}
	return nil
}

// idempotencyHeader is the header that makes a retried operation take effect only once.
const idempotencyHeader = "Idempotency-Key"

// IdempotencyKey identifies a request that may be sent more than once; "" for none.
type IdempotencyKey string

// IdempotencyKeyOf reads the key of a request; "" for none.
func IdempotencyKeyOf(header http.Header) (key IdempotencyKey, err error) {
	err = key.fromHeader(idempotencyHeader, header.Values(idempotencyHeader))
	return key, err
}

func (k *IdempotencyKey) fromHeader(name string, values []string) error {
	if len(values) == 0 {
		return nil
	}
	key := values[0]
	visible := !slices.ContainsFunc([]byte(key), func(b byte) bool { return b < '!' || b > '~' })
	if len(values) > 1 || key == "" || len(key) > 255 || !visible {
		return Refuse(name, "%s must be 1 to 255 visible ASCII characters, once", name)
	}
	*k = IdempotencyKey(key)
	return nil
}

// EmptyBody is the body of an operation that takes an object without members, or none.
type EmptyBody struct{}

// UserID is the owner of a conversation; "" for none.
type UserID string

// Once is the input of operations that take effect once, however often they are sent.
type Once struct {
	// 1 to 255 visible ASCII characters. The same key with the same content in the same conversation has its effect
	// once; with other content it is refused.
	Key IdempotencyKey `header:"Idempotency-Key" arg:"idempotency_key" doc:"minLength=1" maxLength:"255"`
}
