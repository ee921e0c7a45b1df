// Generate writes notices.txt: the licences of all modules that cmd/continuo links, and Go's own.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/continuo-log/continuo/internal/notices/module"
)

func main() {
	if err := write("notices.txt"); err != nil {
		log.Fatal(err)
	}
}

func write(name string) error {
	modules, err := module.Linked("github.com/continuo-log/continuo/cmd/continuo")
	if err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go: %w", err)
	}
	var text strings.Builder
	text.WriteString("Continuo contains these modules and Go's standard library. Their licences follow.\n")
	for _, m := range append(modules, module.Module{Path: "Go", Version: "standard library", Dir: strings.TrimSpace(string(root))}) {
		if err := licences(&text, m); err != nil {
			return err
		}
	}
	return os.WriteFile(name, []byte(text.String()), 0o644)
}

// isLicence matches the names of files that hold licences and notices.
var isLicence = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licences writes the content of a module's licence files.
func licences(text *strings.Builder, m module.Module) error {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w; go mod download fetches it", m.Path, err)
	}
	fmt.Fprintf(text, "\n%s\n", m.Heading())
	found := false
	for _, file := range files {
		if file.IsDir() || !isLicence.MatchString(file.Name()) || strings.HasSuffix(file.Name(), ".go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(m.Dir, file.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(text, "\n-- %s\n\n%s\n", file.Name(), strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n")))
	}
	if !found {
		return errors.New(m.Path + " has no licence file")
	}
	return nil
}
