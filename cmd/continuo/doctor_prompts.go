package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/prompt"
)

// prompts shows the source of each prompt, and which files of the folder look like one and are not read.
func (d *diagnosis) prompts(settings *config.Config) {
	dir := settings.Prompts.Dir
	info, err := os.Stat(dir)
	switch {
	case dir == "":
	case errors.Is(err, fs.ErrNotExist):
		d.add("prompt", warning, "prompts.dir: there is no folder %s, and so the built-in prompts count; make it, or correct the setting", dir)
	case err != nil:
		d.add("prompt", bad, "prompts.dir: %s", err)
		return
	case !info.IsDir():
		d.add("prompt", bad, "prompts.dir: %s is no folder; name the one that the files are in", dir)
		return
	}
	var names, builtIn []string
	for _, source := range (prompt.Prompts{Dir: dir}).Sources() {
		names = append(names, source.Name)
		switch {
		case source.Err != nil:
			d.add("prompt", bad, "%s: %s", source.Name, source.Err)
		case source.File == "":
			builtIn = append(builtIn, source.Name)
		case source.Empty:
			d.add("prompt", good, "%s: %s, which is empty: its message is left out", source.Name, source.File)
		default:
			d.add("prompt", good, "%s: %s", source.Name, source.File)
		}
	}
	if len(builtIn) > 0 {
		d.add("prompt", good, "built in: %s", strings.Join(builtIn, ", "))
	}
	d.unreadPrompts(dir, names)
}

// unreadPrompts warns about files with names similar to those of prompts, or with the same beginning. Other files are
// ignored.
func (d *diagnosis) unreadPrompts(dir string, names []string) {
	if dir == "" {
		return
	}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.add("prompt", warning, "prompts.dir: whether files are there that nothing reads is not known: %s", err)
	}
	for _, file := range files {
		name := file.Name()
		near := nearest.Name(name, names)
		if file.IsDir() || strings.HasPrefix(name, ".") || slices.Contains(names, name) || near == "" && !strings.HasPrefix(name, "system-") {
			continue
		}
		d.add("prompt", warning, "%s: nothing reads it; %s", filepath.Join(dir, name), didYouMean(name, names))
	}
}
