package config

import "github.com/continuo-log/continuo/internal/yamltree"

// untyped is the kind of text from other sources than the file.
const untyped yamltree.Kind = 0

// maxFileBytes bounds the settings file; the code that reads it from the disk checks it.
const maxFileBytes = 64 << 10

// parseYAML reads the settings file: one mapping, with plain scalars, lists and mappings below it. It
// returns an empty mapping for an empty file, and a *yamltree.Error for anything else.
func parseYAML(data []byte) (*yamltree.Node, error) {
	root, err := yamltree.Parse(data, yamltree.Options{In: "settings", For: "settings", IfSecond: "write all settings in one"})
	switch {
	case err != nil:
		return nil, err
	case root.Kind == yamltree.Null:
		return &yamltree.Node{Kind: yamltree.Mapping, At: root.At}, nil
	case root.Kind != yamltree.Mapping:
		return nil, &yamltree.Error{At: root.At, Message: "the file must be a mapping of settings, such as listen: 127.0.0.1:8787"}
	}
	return root, nil
}
