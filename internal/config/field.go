package config

import (
	"reflect"
	"strings"
)

// binder makes settings of the fields of structs. A field with the tag key is a setting, or a section where it is a
// struct. Its type says what it takes; the other tags are
//
//	default  the value without any setting, as it would be written; none is the empty text
//	unset    describes the default where another value decides it
//	help     what the setting means, in sentences
//	alias    its name in other documents
//	example  its value in the example file, where the default is unsuitable
//	min max  the bounds of a number, inclusive, and the least duration; above is an exclusive lower bound
//	enum     the allowed values, separated by commas
//	kind     the form of a text, a list or a mapping (text.go, list.go, mapping.go); the default is a name on one line
//	empty    allows the empty text, and completes `or ""`
//	zero     allows the duration 0s
//	allowed  replaces the description of what is allowed
type binder struct {
	home     string   // for paths that begin with "~/"
	views    []string // the allowed names of views; nil for all
	fileOnly bool     // environment and flags cannot set these
}

// table is the settings of a struct, in the order of its fields.
type table []*setting

// settings lists the settings of the struct that of points to, their defaults already set. prefix begins their keys.
func (b binder) settings(prefix string, of any) table {
	var rows table
	fields := reflect.ValueOf(of).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		key, ok := field.Tag.Lookup("key")
		switch target := fields.Field(i).Addr(); {
		case !ok:
		case field.Type.Kind() == reflect.Struct:
			rows = append(rows, b.settings(prefix+key+".", target.Interface())...)
		default:
			rows = append(rows, b.setting(prefix+key, target.Interface(), field.Tag))
		}
	}
	return rows
}

func (b binder) setting(key string, target any, tag reflect.StructTag) *setting {
	row := &setting{
		key: key, value: b.value(target, tag), def: tag.Get("default"), phrase: tag.Get("unset"),
		example: tag.Get("example"), doc: tag.Get("help"), knownAs: tag.Get("alias"),
	}
	if !b.fileOnly {
		row.env = envName(key)
	}
	if row.phrase == "" {
		row.mustRead(row.def)
	}
	return row
}

// row returns a setting by its key, nil when there is none.
func (t table) row(key string) *setting {
	for _, row := range t {
		if row.key == key {
			return row
		}
	}
	return nil
}

// below lists the names that follow prefix, which ends with a dot or is empty, in the order of the table, each once.
func (t table) below(prefix string) []string {
	var names []string
	seen := map[string]bool{}
	for _, row := range t {
		rest, ok := strings.CutPrefix(row.key, prefix)
		if name, _, _ := strings.Cut(rest, "."); ok && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// isSection reports whether key has settings below it.
func (t table) isSection(key string) bool { return len(t.below(key+".")) > 0 }
