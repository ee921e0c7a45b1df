package fs

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Secrets are the files of @project that no tool may open or write. The zero value allows all.
type Secrets struct {
	patterns []secretPattern
	folder   string   // the project's folder, without links
	paths    []string // absolute and without links; everything below them is secret too
	infos    []os.FileInfo
}

// secretPattern is a glob; with allows, an exception to the patterns before it.
type secretPattern struct {
	glob
	allows bool
}

// NewSecrets reads patterns (in the syntax of fs.search's include; the last one that matches a name counts,
// and one that begins with "!" is an exception) and paths of files and folders, which need not exist. A
// pattern that matches a folder covers everything in it. Case is ignored.
func NewSecrets(projectDir string, patterns, paths []string) (Secrets, error) {
	var s Secrets
	for _, text := range patterns {
		bare, allows := strings.CutPrefix(text, "!")
		compiled, err := newGlob(strings.ToLower(bare))
		if err == nil && bare == "" {
			err = errors.New("the pattern is empty")
		}
		if err != nil {
			return s, fmt.Errorf("%q: %w", text, err)
		}
		s.patterns = append(s.patterns, secretPattern{compiled, allows})
	}
	s.folder = withoutLinks(projectDir)
	for _, name := range paths {
		s.paths = append(s.paths, withoutLinks(name))
		if info, err := os.Stat(name); err == nil {
			s.infos = append(s.infos, info)
		}
	}
	return s, nil
}

// withoutLinks returns an absolute path with the links of its existing part resolved.
func withoutLinks(name string) string {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	rest := ""
	for at := absolute; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(at) == at {
			return absolute
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// errSecret says that tools cannot access a file. It does not say why, because that would reveal where the
// data are.
var errSecret = errors.New("tools cannot reach this file: it may hold secrets (setting tools.deny_files), or it is one of Continuo's own")

// Covers reports whether a name below the project's folder is secret. It does not access the disk.
func (s Secrets) Covers(name string) bool {
	name = path.Clean(filepath.ToSlash(name))
	if s.isBelow(filepath.Join(s.folder, filepath.FromSlash(name))) {
		return true
	}
	name = strings.ToLower(name)
	for at := name; at != "." && at != "/"; at = path.Dir(at) {
		if s.matches(at) {
			return true
		}
	}
	return false
}

func (s Secrets) matches(name string) bool {
	secret := false
	for _, pattern := range s.patterns {
		if pattern.match(name) {
			secret = !pattern.allows
		}
	}
	return secret
}

// IsBelow reports whether a path, links resolved, is one of the secret paths or below one.
func (s Secrets) IsBelow(name string) bool { return s.isBelow(withoutLinks(name)) }

func (s Secrets) isBelow(absolute string) bool {
	for _, secret := range s.paths {
		if rest, err := filepath.Rel(secret, absolute); err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// isOne reports whether a file is the same as one of the secret paths, for example through a hard link.
func (s Secrets) isOne(info iofs.FileInfo) bool {
	for _, secret := range s.infos {
		if os.SameFile(secret, info) {
			return true
		}
	}
	return false
}

// check refuses an open file that is secret by its name, by its name with links resolved, or by another name
// of the same file. Local is the name in this system's form.
func (s Secrets) check(name, local string, opened iofs.FileInfo) error {
	if len(s.patterns) == 0 && len(s.paths) == 0 {
		return nil
	}
	if s.Covers(name) || s.isOne(opened) {
		return errSecret
	}
	real, err := filepath.EvalSymlinks(filepath.Join(s.folder, local))
	if err != nil {
		return errors.New("it was removed meanwhile")
	}
	below, err := filepath.Rel(s.folder, real)
	if err != nil || s.Covers(below) {
		return errSecret
	}
	info, err := os.Lstat(real)
	if err != nil || !os.SameFile(info, opened) {
		return errors.New("its name has come to mean another file meanwhile; try again")
	}
	return s.checkFolders(real)
}

// checkFolders refuses a file below a folder that is the same as one of the secret paths.
func (s Secrets) checkFolders(real string) error {
	for at := filepath.Dir(real); len(at) >= len(s.folder); at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && s.isOne(info) {
			return errSecret
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return nil
}
