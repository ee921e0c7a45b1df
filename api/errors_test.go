package api

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// Every sentinel error of the log and of the engine has a row in the table that all adapters use.
func TestEverySentinelHasAKind(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\s*(?:var )?(Err\w+)\s*=\s*errors\.New`)
	const startup = "ErrNewerSchema" // ends the program before any adapter runs
	for dir, prefix := range map[string]string{"../engine": "{engine.", "..": "{continuo."} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
				if name := found[1]; !strings.Contains(string(source), prefix+name+",") && name != startup {
					t.Errorf("%s declares %s, which the table of errors does not have", path, name)
				}
			}
		}
	}
}

func TestHiddenErrorsShowTheirOwnWordsOnly(t *testing.T) {
	err := fmt.Errorf("open /secret/path: %w", continuo.ErrUnavailable)
	kind, ok := KindOf(err)
	if !ok || kind.Code != "store_unavailable" || strings.Contains(kind.Message(err), "secret") {
		t.Errorf("got %+v: %s", kind, kind.Message(err))
	}
	if kind, ok := KindOf(fmt.Errorf("anything")); ok || kind.Class != ClassInternal || kind.Code != "internal" {
		t.Errorf("an unknown error is %+v", kind)
	}
}
