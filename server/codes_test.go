package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// loggedOnly is the code of an answer that breaks off after it began: clients do not see it.
const loggedOnly = "export_broke_off"

// Each code of an error that the API or the server has is explained in docs/api.md.
func TestCodesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Errors\n")
	table, _, _ = strings.Cut(table, "\n## ")
	given := regexp.MustCompile(`Code: +"([a-z_]+)"|, "([a-z_]+)", Class[A-Z]`)
	found := 0
	for _, folder := range []string{".", "../api"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range given.FindAllStringSubmatch(string(source), -1) {
				found++
				if code := match[1] + match[2]; code != loggedOnly && !strings.Contains(table, "`"+code+"`") {
					t.Errorf("%s: docs/api.md does not explain %s", name, code)
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d codes found in the sources", found)
	}
}
