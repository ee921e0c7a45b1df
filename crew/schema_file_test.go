package crew

import (
	"flag"
	"os"
	"testing"
)

var updateSchema = flag.Bool("update-schema", false, "rewrite crew.schema.json")

// TestTheSchemaFile keeps crew.schema.json, which editors find by its address, equal to what the program knows. The
// flag -update-schema writes it.
func TestTheSchemaFile(t *testing.T) {
	const name = "crew.schema.json"
	if *updateSchema {
		if err := os.WriteFile(name, Schema(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(name)
	if err != nil || string(file) != string(Schema()) {
		t.Errorf("%s is not what the program knows (%v): run go test ./crew -run TestTheSchemaFile -update-schema", name, err)
	}
}
