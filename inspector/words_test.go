package inspector

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The page says every reason of a verdict in words.
func TestReasonsHaveWords(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "web", "src", "lib", "request.ts"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "window", "reason.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		value, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(value.Names[0].Name, "Reason") || len(value.Values) == 0 {
			return true
		}
		literal, ok := value.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		reason, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if found++; !strings.Contains(string(page), " "+reason+": '") {
			t.Errorf("web/src/lib/request.ts has no words for the reason %s", reason)
		}
		return true
	})
	if found < 20 {
		t.Errorf("window/reason.go has %d reasons, which cannot be all", found)
	}
}
