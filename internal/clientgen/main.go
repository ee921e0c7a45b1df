// Command clientgen writes the clients of other languages in clients/ from server/openapi.json: the types of requests and
// answers, and a class with one method for each operation. Run it with go generate ./api (or make clients); its test
// fails while a file is out of date.
//
// An operation whose answer is JSON or a stream, as the request asks, becomes two methods. Events are a union of types,
// by x-events of the stream's schema. What is not generated, the connection and the reading of streams, is in the file
// transport of each client.
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
		fmt.Fprintln(os.Stderr, "clientgen:", err)
		os.Exit(1)
	}
}

// generate makes the generated files, by their paths below root.
func generate(root string) (map[string][]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, "server", "openapi.json"))
	if err != nil {
		return nil, err
	}
	d, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	return map[string][]byte{
		"clients/typescript/src/types.gen.ts":          []byte(typescriptTypes(d)),
		"clients/typescript/src/client.gen.ts":         []byte(typescriptClient(d)),
		"clients/python/src/continuo_client/types.py":  []byte(pythonTypes(d)),
		"clients/python/src/continuo_client/client.py": []byte(pythonClient(d)),
	}, nil
}

func write(root string, files map[string][]byte) error {
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
