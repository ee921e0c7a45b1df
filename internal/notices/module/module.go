// Package module lists the modules that a program links.
package module

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Module is one that the program links.
type Module struct{ Path, Version, Dir string }

// Heading is the line above a module's licences.
func (m Module) Heading() string { return "== " + m.Path + " " + m.Version }

// systems are those that releases are built for.
var systems = []string{"linux", "darwin", "windows"}

// Linked lists the modules besides the program's own that a package links, on any of the systems, by path.
func Linked(pkg string) ([]Module, error) {
	found := map[string]Module{}
	for _, system := range systems {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", pkg)
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("list the packages of %s for %s: %w", pkg, system, err)
		}
		for line := range strings.Lines(string(out)) {
			if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 3 {
				found[fields[0]] = Module{fields[0], fields[1], fields[2]}
			}
		}
	}
	var modules []Module
	for _, path := range slices.Sorted(maps.Keys(found)) {
		modules = append(modules, found[path])
	}
	return modules, nil
}
