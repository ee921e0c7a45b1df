// Command crosscheck type-checks a package, with all that it imports, for other platforms than this one.
//
//	go run ./internal/crosscheck PACKAGE OS/ARCHITECTURE...
//
// It finds what a build for these platforms would complain about in a few seconds each, where the build itself takes
// minutes, because it compiles every dependency. Of packages of other modules it reads the declarations only. It does not
// link, and knows no cgo.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: crosscheck PACKAGE OS/ARCHITECTURE...")
		os.Exit(2)
	}
	failed := false
	for _, platform := range os.Args[2:] {
		if err := check(os.Args[1], platform); err != nil {
			fmt.Fprintf(os.Stderr, "%s does not build:\n%v\n", platform, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
}

// check type-checks a package and its dependencies for a platform.
func check(pkg, platform string) error {
	system, architecture, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("%q is not OS/ARCHITECTURE", platform)
	}
	sizes := types.SizesFor("gc", architecture)
	if sizes == nil {
		return fmt.Errorf("unknown architecture %q", architecture)
	}
	packages, err := list(pkg, system, architecture)
	if err != nil {
		return err
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, p := range packages {
		if p.ImportPath == "unsafe" {
			continue
		}
		if checked[p.ImportPath], err = p.check(checked, sizes); err != nil {
			return err
		}
	}
	return nil
}

// list returns the packages that one is made of, each after those that it imports.
func list(pkg, system, architecture string) (packages []listed, err error) {
	var complaints bytes.Buffer
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", pkg) //nolint:gosec,noctx // a developer's tool
	command.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0")
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w\n%s", pkg, err, &complaints)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("list the packages of %s: %w", pkg, err)
		}
		packages = append(packages, p)
	}
}

// check type-checks one package. Of those of other modules it reads declarations only.
func (p listed) check(checked map[string]*types.Package, sizes types.Sizes) (*types.Package, error) {
	own := p.Module != nil && p.Module.Main
	files, set, err := p.parse()
	if err != nil {
		return nil, err
	}
	var found []error
	config := types.Config{
		IgnoreFuncBodies: !own,
		Sizes:            sizes,
		Error:            func(err error) { found = append(found, err) },
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped := p.ImportMap[path]; mapped != "" {
				path = mapped
			}
			if imported := checked[path]; imported != nil {
				return imported, nil
			}
			return nil, fmt.Errorf("%s is not among the dependencies", path)
		}),
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	result, _ := config.Check(p.ImportPath, set, files, nil) // its error is the first of those found
	if !own {
		return result, nil
	}
	return result, errors.Join(found...)
}

func (p listed) parse() (files []*ast.File, set *token.FileSet, err error) {
	set = token.NewFileSet()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, fmt.Errorf("read package %s: %w", p.ImportPath, err)
		}
		files = append(files, file)
	}
	return files, set, nil
}

// importer is a function that implements types.Importer.
type importer func(path string) (*types.Package, error)

// Import calls the function.
func (i importer) Import(path string) (*types.Package, error) { return i(path) }
