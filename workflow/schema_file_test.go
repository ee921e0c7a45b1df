package workflow

import (
	"flag"
	"os"
	"testing"
)

var updateSchema = flag.Bool("update-schema", false, "rewrite workflow.schema.json")

// TestTheSchemaFile keeps workflow.schema.json, which editors find by its address, equal to what the program knows. The
// flag -update-schema writes it.
func TestTheSchemaFile(t *testing.T) {
	const name = "workflow.schema.json"
	if *updateSchema {
		if err := os.WriteFile(name, Schema(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(name)
	if err != nil || string(file) != string(Schema()) {
		t.Errorf("%s is not what the program knows (%v): run go test ./workflow -run TestTheSchemaFile -update-schema", name, err)
	}
}
