// Package arch enforces the layers of docs/architecture.md: imports only go down, and packages of one layer do not
// import each other. Each failure says what to do instead.
package arch

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/continuo-log/continuo"

// layers lists the packages by layer. "" is the module's root; a path that ends with /* is every folder below it.
var layers = map[string]int{
	"":                     1,
	"window":               2,
	"window/windowtest":    3,
	"render":               3,
	"model":                2,
	"model/known":          2,
	"tool":                 2,
	"token":                2,
	"prompt":               2,
	"interchange":          3,
	"gateway/request":      3,
	"gateway/match":        4,
	"maintenance":          3,
	"recall":               3,
	"recall/*":             3,
	"recall/lookup":        4,
	"recall/search":        4,
	"internal/evidence":    4,
	"internal/indextest":   5,
	"internal/recallfit":   11,
	"internal/recallbench": 9,
	"internal/windowcost":  4,
	"fulltext":             2,
	"fulltext/*":           2,
	"audit":                2,
	"auth":                 2,
	"inspector":            10,
	"internal/chatscreen":  10,
	"internal/config":      3,
	"internal/yamlform":    2,
	"internal/pgtest":      0,
	"internal/historytest": 0,
	"object":               2,
	"object/*":             2,
	"store/*":              4,
	"store":                4,
	"model/*":              4,
	"tool/*":               4,
	"tool/search":          5,
	"turn":                 4,
	"workflow":             4,
	"crew":                 4,
	"crew/view":            4,
	"task":                 4,
	"durable":              5,
	"engine/catalog":       5,
	"engine/conversations": 5,
	"engine/metrics":       5,
	"engine/ledger":        5,
	"engine/recalls":       5,
	"engine/contexts":      6,
	"engine/start":         6,
	"engine/summary":       6,
	"engine/memories":      7,
	"memory":               3,
	"engine/crews":         7,
	"engine/runs":          7,
	"engine/replays":       7,
	"engine/tasks":         7,
	"engine":               8,
	"api":                  9,
	"internal/apigen":      11,
	"internal/clientgen":   11,
	"examples/*":           11,
	// What the adapters for other frameworks, modules of their own, share.
	"adapters/internal/mirror":   4,
	"adapters/internal/killtest": 0,
	"server":                     10,
	"mcpserver":                  10,
	"gateway":                    10,
	"telegram":                   10,
	"telegram/*":                 10,
	"cmd/*":                      11,
	"internal/e2e":               11,
	// Messages of protocols as entries.
	"internal/messages": 2,
	// The wire types of these protocols, with the translation between their items and entries.
	"internal/wire/responses": 2,
	"internal/wire/gemini":    2,
	// What the packages of engine share.
	"engine/internal/brief":     0,
	"engine/internal/charged":   4,
	"engine/internal/logtext":   4,
	"engine/internal/lifecycle": 6,
}

// standardOnly are packages that import nothing from outside the standard library and this module.
var standardOnly = []string{"", "window", "render", "model", "tool", "prompt", "interchange", "gateway/request", "auth", "turn", "crew/view", "recall", "internal/rawjson", "internal/sse", "internal/pressure"}

func TestImportsOnlyGoDown(t *testing.T) {
	for _, pkg := range packages(t) {
		layer, ok := layerOf(pkg.path)
		if !ok {
			t.Errorf("%s is in no layer: add it to layers in this test and to docs/architecture.md", pkg.path)
			continue
		}
		for _, imported := range pkg.imports {
			below, ok := layerOf(imported)
			switch {
			case !ok:
				continue // reported for the package itself
			case below > layer:
				t.Errorf("%s (layer %d) imports %s (layer %d): move the type that it needs down, or take it as a parameter", pkg.path, layer, imported, below)
			case below == layer && layer > 0 && !sameTree(pkg.path, imported):
				t.Errorf("%s imports %s of the same layer: take what it needs as a parameter, or move the type down a layer", pkg.path, imported)
			}
		}
	}
}

func TestStandardLibraryOnly(t *testing.T) {
	for _, pkg := range packages(t) {
		if !slices.Contains(standardOnly, pkg.path) {
			continue
		}
		for _, outside := range pkg.outside {
			t.Errorf("%q imports %s: packages that decide use the standard library only; do this in a package that does I/O", pkg.path, outside)
		}
	}
}

// TestPropertiesAreTriedWithTheSameValues: else a value that nobody tried before fails a change that has nothing to do with it.
func TestPropertiesAreTriedWithTheSameValues(t *testing.T) {
	const rapid, seed = "pgregory.net/rapid", module + "/internal/rapidseed"
	for _, pkg := range packages(t) {
		if slices.Contains(pkg.ofTests, rapid) && !slices.Contains(pkg.ofTests, seed) {
			t.Errorf("%q uses %s in its tests: import %s beside it", pkg.path, rapid, seed)
		}
	}
}

// sameTree reports whether one package is a part of the other: in a folder below it or below its parent.
func sameTree(a, b string) bool {
	a, _, _ = strings.Cut(a, "/internal")
	b, _, _ = strings.Cut(b, "/internal")
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

type importing struct {
	path    string   // below the module
	imports []string // of this module, below it
	outside []string // of other modules
	ofTests []string // whole paths
}

// packages reads the imports of every package.
func packages(t *testing.T) []importing {
	t.Helper()
	root := filepath.Join("..", "..")
	var found []importing
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || strings.HasPrefix(name, ".") && path != root {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return filepath.SkipDir // a module of its own
		}
		parsed, err := build.ImportDir(path, 0)
		if err != nil {
			return nil // no Go files
		}
		relative, _ := filepath.Rel(root, path)
		found = append(found, packageOf(filepath.ToSlash(relative), parsed))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("found only %d packages below %s", len(found), root)
	}
	return found
}

func packageOf(path string, parsed *build.Package) importing {
	r := importing{path: strings.TrimPrefix(path, "."), ofTests: slices.Concat(parsed.TestImports, parsed.XTestImports)}
	for _, name := range parsed.Imports {
		if below, ok := strings.CutPrefix(name, module); ok {
			r.imports = append(r.imports, strings.TrimPrefix(below, "/"))
		} else if strings.Contains(strings.Split(name, "/")[0], ".") {
			r.outside = append(r.outside, name)
		}
	}
	return r
}

// layerOf returns a package's layer; internal packages that all may import are layer 0.
func layerOf(path string) (int, bool) {
	if layer, ok := layers[path]; ok {
		return layer, true
	}
	if strings.HasPrefix(path, "internal/") {
		return 0, true
	}
	path, _, _ = strings.Cut(path, "/internal/") // a part of the package that it is below
	if layer, ok := layers[path]; ok {
		return layer, true
	}
	layer, ok := layers[filepath.ToSlash(filepath.Join(filepath.Dir(path), "*"))]
	return layer, ok
}
