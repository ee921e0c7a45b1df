// Command apigen writes what is generated from the types of operations: server/openapi.json from the table in package api,
// and mcpserver/schemas.json from the tools of package mcpserver. Run it with go generate ./api; its test fails while a
// file is out of date.
//
// The types and limits come from the Go types by reflection, the descriptions from the doc comments in the sources, and
// the known values of a named string type from its constants. server/openapi.yaml has what no type says: the head of the
// document, and the schemas of types whose JSON is not that of their fields.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	const root = ".." // go generate runs in the folder api
	files, err := generate(root)
	if err == nil {
		err = write(root, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

func write(root string, files map[string][]byte) error {
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
