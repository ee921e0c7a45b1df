// Package notices holds the licences of the modules that the program is made of. notices.txt is written by
// go generate (make licenses) from the module cache; a test proves that it names exactly the modules that
// cmd/continuo links on any of the systems that releases are built for.
package notices

import _ "embed"

//go:generate go run ./generate

//go:embed notices.txt
var text string

// Text is the licence texts: for each module a line "== PATH VERSION" and then what its licence files say.
func Text() string { return text }
