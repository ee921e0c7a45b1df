// Package arch keeps the floors of docs/architecture.md: imports only go down, and siblings do not know
// each other. Each failure says what to do instead.
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

// floors lists the rooms of the house by floor. "" is the module's root; a room named with /* stands
// for each folder below it.
var floors = map[string]int{
	"":                     1,
	"window":               2,
	"render":               2,
	"model":                2,
	"tool":                 2,
	"token":                2,
	"prompt":               2,
	"interchange":          2,
	"upkeep":               2,
	"fulltext":             2,
	"fulltext/*":           2,
	"auth":                 2,
	"internal/config":      2,
	"internal/yamlform":    2,
	"internal/pgtest":      0,
	"internal/historytest": 0,
	"object":               2,
	"object/*":             2,
	"store/*":              2,
	"store":                2,
	"model/*":              3,
	"tool/*":               3,
	"turn":                 3,
	"workflow":             3,
	"crew":                 3,
	"crew/view":            3,
	"task":                 4,
	"durable":              4,
	"engine":               5,
	"server":               6,
	"mcpserver":            6,
	"telegram":             6,
	"telegram/*":           6,
	"cmd/*":                7,
	"internal/e2e":         7,
}

// standardOnly are rooms that import nothing from outside the standard library and this module.
var standardOnly = []string{"", "window", "render", "model", "tool", "prompt", "interchange", "auth", "turn", "crew/view", "internal/rawjson", "internal/sse"}

func TestImportsOnlyGoDown(t *testing.T) {
	for _, room := range rooms(t) {
		floor, ok := floorOf(room.path)
		if !ok {
			t.Errorf("%s stands on no floor: add it to floors in this test and to docs/architecture.md", room.path)
			continue
		}
		for _, imported := range room.imports {
			below, ok := floorOf(imported)
			switch {
			case !ok:
				continue // reported for the room itself
			case below > floor:
				t.Errorf("%s (floor %d) imports %s (floor %d): move the word that it needs down to the root, or take it as a parameter", room.path, floor, imported, below)
			case below == floor && floor > 0 && !sameRoom(room.path, imported):
				t.Errorf("%s imports its sibling %s: take what it needs as a parameter, or move the word down a floor", room.path, imported)
			}
		}
	}
}

func TestTheWordsStandOnTheStandardLibrary(t *testing.T) {
	for _, room := range rooms(t) {
		if !slices.Contains(standardOnly, room.path) {
			continue
		}
		for _, outside := range room.outside {
			t.Errorf("%q imports %s: the rooms that decide use the standard library only; do this in a room that does I/O", room.path, outside)
		}
	}
}

// sameRoom reports whether one package is an internal part of the other's room.
func sameRoom(a, b string) bool {
	a, _, _ = strings.Cut(a, "/internal")
	b, _, _ = strings.Cut(b, "/internal")
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

type room struct {
	path    string   // below the module
	imports []string // of this module, below it
	outside []string // of other modules
}

// rooms reads the imports of every package, tests left out.
func rooms(t *testing.T) []room {
	t.Helper()
	root := filepath.Join("..", "..")
	var found []room
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
		pkg, err := build.ImportDir(path, 0)
		if err != nil {
			return nil // no Go files
		}
		relative, _ := filepath.Rel(root, path)
		found = append(found, roomOf(filepath.ToSlash(relative), pkg.Imports))
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

func roomOf(path string, imports []string) room {
	r := room{path: strings.TrimPrefix(path, ".")}
	for _, name := range imports {
		if below, ok := strings.CutPrefix(name, module); ok {
			r.imports = append(r.imports, strings.TrimPrefix(below, "/"))
		} else if strings.Contains(strings.Split(name, "/")[0], ".") {
			r.outside = append(r.outside, name)
		}
	}
	return r
}

// floorOf returns a room's floor; what all rooms share stands in the cellar, floor 0.
func floorOf(path string) (int, bool) {
	if floor, ok := floors[path]; ok {
		return floor, true
	}
	if strings.HasPrefix(path, "internal/") {
		return 0, true
	}
	path, _, _ = strings.Cut(path, "/internal/") // a part of the room that it stands in
	if floor, ok := floors[path]; ok {
		return floor, true
	}
	floor, ok := floors[filepath.ToSlash(filepath.Join(filepath.Dir(path), "*"))]
	return floor, ok
}
