package main

import (
	"reflect"

	continuo "github.com/continuo-log/continuo"
)

// names are the components of types that clients know under another name than the Go name.
var names = map[reflect.Type]string{}

// written are the types whose schemas are hand-written in server/openapi.yaml: they read and write their JSON themselves.
var written = map[reflect.Type]string{
	reflect.TypeFor[continuo.Content]():  "Content",
	reflect.TypeFor[continuo.ToolCall](): "ToolCall",
}
