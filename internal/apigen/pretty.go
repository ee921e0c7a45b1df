package main

import (
	"bytes"
	"encoding/json"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// lineWidth is the width up to which a value is written on one line.
const lineWidth = 120

// pretty writes a JSON value with its members in their order, small values on one line.
func pretty(value json.RawMessage, indent string) []byte {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		panic(err)
	}
	if compact.Len()+len(indent) <= lineWidth {
		return spaced(compact.Bytes())
	}
	var out bytes.Buffer
	inner := indent + "  "
	switch compact.Bytes()[0] {
	case '{':
		object, err := rawjson.ParseObject(compact.Bytes())
		if err != nil {
			panic(err)
		}
		before := "{\n"
		for _, field := range object {
			out.WriteString(before + inner)
			before = ",\n"
			out.Write(append(rawjson.MustMarshal(field.Key), ": "...))
			out.Write(pretty(field.Value, inner))
		}
		out.WriteString("\n" + indent + "}")
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(compact.Bytes(), &items); err != nil {
			panic(err)
		}
		before := "[\n"
		for _, item := range items {
			out.WriteString(before + inner)
			before = ",\n"
			out.Write(pretty(item, inner))
		}
		out.WriteString("\n" + indent + "]")
	default:
		return compact.Bytes()
	}
	return out.Bytes()
}

// spaced adds a space after each comma and colon outside of strings.
func spaced(compact []byte) []byte {
	var out []byte
	quoted := false
	for i := 0; i < len(compact); i++ {
		out = append(out, compact[i])
		switch {
		case quoted && compact[i] == '\\':
			i++
			out = append(out, compact[i])
		case compact[i] == '"':
			quoted = !quoted
		case !quoted && (compact[i] == ',' || compact[i] == ':'):
			out = append(out, ' ')
		}
	}
	return out
}
