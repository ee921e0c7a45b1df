package object

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"syscall"

	continuo "github.com/continuo-log/continuo"
)

// list reads one folder at a time, only folders that match the prefix.
func (f *folder) list(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error] {
	return func(yield func(continuo.ObjectInfo, error) bool) {
		f.walk(ctx, path.Dir(prefix+"x"), prefix, yield)
	}
}

// walk yields the objects below dir in the order of their names, and reports whether to continue.
func (f *folder) walk(ctx context.Context, dir, prefix string, yield func(continuo.ObjectInfo, error) bool) bool {
	entries, err := f.entries(dir)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return isMissing(err) || yield(continuo.ObjectInfo{}, translateFile(err))
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if checkName(name) != nil || !strings.HasPrefix(key(name, entry), prefix) {
			continue
		}
		if entry.IsDir() {
			if !f.walk(ctx, name, prefix, yield) {
				return false
			}
			continue
		}
		info, err := f.root.Lstat(name)
		if isMissing(err) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return yield(continuo.ObjectInfo{}, translateFile(err))
		}
		if !yield(continuo.ObjectInfo{Name: name, Size: info.Size(), ModifiedAt: info.ModTime()}, nil) {
			return false
		}
	}
	return true
}

// entries returns a folder's entries in the order of the names of their objects: a/b comes after a-c, because
// a slash sorts after a hyphen.
func (f *folder) entries(dir string) ([]fs.DirEntry, error) {
	file, err := f.root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := file.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(key(a.Name(), a), key(b.Name(), b)) })
	return entries, errors.Join(err, file.Close())
}

// key returns an object's name, or for a folder the prefix of its objects' names.
func key(name string, entry fs.DirEntry) string {
	if entry.IsDir() {
		return name + "/"
	}
	return name
}

// isMissing reports whether an error means that something was removed, which may happen at any time.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
