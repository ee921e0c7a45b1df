package fs

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

//go:embed write.md
var writeDescription string

// writeParameters is the JSON Schema of fs.write's arguments.
const writeParameters = `{"type":"object","properties":{"path":{"type":"string","description":"A path below @state/files/ or @project/"},"content":{"type":"string","description":"The whole text of the file"}},"required":["path","content"],"additionalProperties":false}`

// maxWritten bounds the text of one file, in bytes.
const maxWritten = 256 << 10

// Write is the tool fs.write. A file of @state is not a second copy: its content is the call in the log, and
// its name is the OutputRef of the call's result.
type Write struct{ Roots }

// Spec describes the tool to a model.
func (w Write) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "fs.write", Description: w.describe(strings.TrimSpace(writeDescription)), Parameters: json.RawMessage(writeParameters)}
}

// Useful is part of tool.Situational: a chat without a project folder has no use for files. Steps of runs are
// offered all tools.
func (w Write) Useful(s tool.Situation) bool { return w.of(s.Conversation).ProjectDir != "" }

// Repeatable is part of tool.Repeatable: the second call writes the same text again.
func (Write) Repeatable() bool { return true }

type writeArguments struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

// Run writes a file.
func (w Write) Run(_ context.Context, call tool.Call) tool.Result {
	var arguments writeArguments
	err := tool.Decode(call.Arguments, `{"path": "@state/files/notes.md", "content": "# Notes"}`, &arguments)
	if err == nil {
		err = arguments.check()
	}
	if err != nil {
		return tool.Failure("fs.write: %v", err)
	}
	file, err := w.write(call, arguments.Path, *arguments.Content)
	if err != nil {
		return tool.Failure("fs.write %q: %v", arguments.Path, err)
	}
	report := fmt.Sprintf("Wrote %s (%d bytes)", arguments.Path, len(*arguments.Content))
	return tool.Result{Outcome: report, Content: report, File: file}
}

func (a writeArguments) check() error {
	switch {
	case a.Content == nil:
		return errors.New("content is missing; give the whole text of the file")
	case len(*a.Content) > maxWritten:
		return fmt.Errorf("content has %d bytes, more than the limit of %d; write several files", len(*a.Content), maxWritten)
	}
	return nil
}

// write writes a file and returns its path in @state, "" for one of the project.
func (w Write) write(call tool.Call, name, text string) (string, error) {
	below, name, err := w.find(call, name)
	if err != nil {
		return "", err
	}
	defer below.Close() //nolint:errcheck // what was written is closed by then
	if folder, ok := below.(project); ok {
		return "", folder.write(name, text)
	}
	if !strings.HasPrefix(name, filesFolder+"/") {
		return "", errors.New("in @state only files below @state/files/ can be written; the rest is what Continuo keeps")
	}
	return aliasState + "/" + name, nil // the log keeps the call, which has the content
}

// write replaces a file by a new one, so that no reader sees a partial file.
func (p project) write(name, text string) error {
	local, err := localName(name)
	if err != nil {
		return err
	}
	mode, err := p.mayWrite(name, local)
	if err != nil {
		return err
	}
	folder := path.Dir(name)
	if err := p.root.MkdirAll(folder, 0o755); err != nil {
		return reason(err)
	}
	temporary, err := localName(path.Join(folder, ".continuo-write-"+rand.Text()))
	if err != nil {
		return err
	}
	if err := p.fill(temporary, text, mode); err != nil {
		_ = p.root.Remove(temporary) // the first error is returned
		return reason(err)
	}
	if err := p.root.Rename(temporary, local); err != nil {
		_ = p.root.Remove(temporary)
		return reason(err)
	}
	return nil
}

func (p project) fill(local, text string, mode iofs.FileMode) error {
	file, err := p.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// mayWrite refuses secret files and git's own files, by this name or with links resolved, and anything other
// than a regular file. It returns the mode of the file.
func (p project) mayWrite(name, local string) (iofs.FileMode, error) {
	if ofGit(name) {
		return 0, errGit
	}
	if name == "" {
		return 0, errFolder
	}
	if p.secrets.Covers(name) {
		return 0, errSecret
	}
	mode := iofs.FileMode(0o644)
	info, err := p.root.Lstat(local)
	switch {
	case err == nil && !info.Mode().IsRegular():
		if info.IsDir() {
			return 0, errFolder
		}
		return 0, fmt.Errorf("this is %s; only regular files can be written", kindOf(info.Mode()))
	case err == nil:
		mode = info.Mode().Perm()
		if err = p.checkFolder(path.Dir(name)); err == nil {
			err = p.secrets.check(name, local, info)
		}
	case errors.Is(err, iofs.ErrNotExist):
		err = p.checkFolder(path.Dir(name))
	default:
		err = reason(err)
	}
	return mode, err
}

// checkFolder refuses a secret folder; for a folder that does not exist yet, it checks the parent.
func (p project) checkFolder(folder string) error {
	for ; ; folder = path.Dir(folder) {
		local, err := localName(folder)
		if err != nil {
			return err
		}
		info, err := p.root.Stat(local)
		if err == nil {
			return errors.Join(p.notGit(local), p.secrets.check(folder, local, info))
		}
		if !errors.Is(err, iofs.ErrNotExist) || folder == "." {
			return reason(err)
		}
	}
}

var errGit = errors.New("git's own files cannot be written")

func ofGit(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// notGit refuses a folder that, with links resolved, is among git's own files.
func (p project) notGit(local string) error {
	below, err := filepath.Rel(withoutLinks(p.root.Name()), withoutLinks(filepath.Join(p.root.Name(), local)))
	if err != nil || ofGit(filepath.ToSlash(below)) {
		return errGit
	}
	return nil
}
