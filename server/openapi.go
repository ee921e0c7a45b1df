package server

import (
	_ "embed"
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/continuo-log/continuo/internal/rawjson"
)

//go:embed openapi.yaml
var openAPISource []byte

// openAPIDocument converts openapi.yaml to JSON, with the program's version in it.
func openAPIDocument(version string) ([]byte, error) {
	text, err := yaml.YAMLToJSON(openAPISource)
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	document, err := rawjson.ParseObject(text)
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	info, err := rawjson.ParseObject(document.Get("info"))
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: info: %w", err)
	}
	info.Set("version", rawjson.MustMarshal(version))
	document.Set("info", rawjson.MustMarshal(info))
	return rawjson.Marshal(document)
}
