// Package notices holds the licences of the modules that the program consists of. notices.txt is written by go generate
// (make licenses) from the module cache; a test checks that it names exactly the modules that cmd/continuo links on any
// of the systems that releases are built for.
package notices

import _ "embed"

//go:generate go run ./generate

//go:embed notices.txt
var text string

// Text is the licence texts: for each module a line "== PATH VERSION" and then the content of its licence files.
func Text() string { return text }
