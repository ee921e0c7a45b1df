package server

import (
	_ "embed"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// openAPISource is the document as go generate ./api makes it from the table of operations and openapi.yaml.
//
//go:embed openapi.json
var openAPISource []byte

// openAPIDocument is the document with the program's version in it.
func openAPIDocument(version string) ([]byte, error) {
	document, err := rawjson.ParseObject(openAPISource)
	if err != nil {
		return nil, fmt.Errorf("read openapi.json: %w", err)
	}
	info, err := rawjson.ParseObject(document.Get("info"))
	if err != nil {
		return nil, fmt.Errorf("read openapi.json: info: %w", err)
	}
	info.Set("version", rawjson.MustMarshal(version))
	document.Set("info", rawjson.MustMarshal(info))
	return rawjson.Marshal(document)
}
