package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"

	"github.com/continuo-log/continuo/tool"
)

// project is the files of a folder. Whatever the name, and despite concurrent changes, the root opens nothing
// outside of the folder.
type project struct {
	root    *os.Root
	secrets Secrets
}

func (p project) Close() error { return p.root.Close() }

// open opens a regular file. It checks the file's type before it opens, because opening a device can have
// side effects, and again afterwards, because the name may refer to another file by then.
func (p project) open(ctx context.Context, name string) (*file, error) {
	local, err := localName(name)
	if err != nil {
		return nil, err
	}
	info, err := p.root.Stat(local)
	if err == nil {
		err = mustBeRegular(info)
	}
	if err != nil {
		return nil, p.missing(ctx, name, err)
	}
	if p.secrets.Covers(name) {
		return nil, errSecret
	}
	opened, err := p.root.OpenFile(local, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, reason(err)
	}
	if info, err = opened.Stat(); err == nil {
		err = mustBeRegular(info)
	}
	if err == nil {
		err = p.secrets.check(name, local, info)
	}
	if err != nil {
		_ = opened.Close() // nothing was written
		return nil, reason(err)
	}
	return &file{ReaderAt: opened, Closer: opened, size: info.Size()}, nil
}

// missing returns the reason of an error; for a missing file, with the name that was probably meant.
func (p project) missing(ctx context.Context, name string, err error) error {
	err = reason(err)
	if !errors.Is(err, errNoFile) {
		return err
	}
	folder, last := path.Split(name)
	w := walker{project: p, ctx: ctx}
	siblings, _, pageErr := w.page(strings.TrimSuffix(folder, "/"), "")
	if pageErr != nil {
		return fmt.Errorf("%w, and not the folder %s/%s either", err, aliasProject, folder)
	}
	names := make([]string, len(siblings))
	for i, sibling := range siblings {
		names[i] = sibling.Name()
	}
	if near := nearest.Name(last, names); near != "" && !strings.EqualFold(near, last) {
		return fmt.Errorf("%w; did you mean %s/%s%s?", err, aliasProject, folder, tool.Printable(near))
	} else if near != "" {
		return fmt.Errorf("%w; small and capital letters differ in %s/%s%s", err, aliasProject, folder, tool.Printable(near))
	}
	return fmt.Errorf("%w; fs.list with path %s/%s shows what there is", err, aliasProject, folder)
}

func mustBeRegular(info iofs.FileInfo) error {
	switch {
	case info.IsDir():
		return errFolder
	case !info.Mode().IsRegular():
		return fmt.Errorf("this is %s; only regular files can be read", kindOf(info.Mode()))
	}
	return nil
}

// kindOf names a type of file other than a folder or a regular file.
func kindOf(mode iofs.FileMode) string {
	switch {
	case mode&iofs.ModeSymlink != 0:
		return "link"
	case mode&iofs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&iofs.ModeSocket != 0:
		return "a socket"
	case mode&iofs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}

// localName converts a name to this system's form; the alias itself is ".".
func localName(name string) (string, error) {
	if name == "" {
		return ".", nil
	}
	local, err := filepath.Localize(name)
	if err != nil {
		return "", errors.New("this system cannot have a file of that name")
	}
	return local, nil
}

// reason removes the system's part of an error, which would reveal names of folders to a model, and describes
// the usual errors in words.
func reason(err error) error {
	var inPath *iofs.PathError
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return errNoFile
	case errors.As(err, &inPath):
		err = inPath.Err
	}
	if strings.Contains(err.Error(), "path escapes") { // package os has no error value for it
		return errors.New("it leads out of the project's folder through a link; only what is in the folder can be read")
	}
	return err
}

func (p project) walk(ctx context.Context, name string, depth int, after string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		local, err := localName(name)
		if err != nil {
			yield(item{}, err)
			return
		}
		info, err := p.root.Stat(local)
		switch {
		case err != nil:
			yield(item{}, p.missing(ctx, name, err))
		case info.IsDir() && p.secrets.Covers(name):
			yield(item{}, errSecret)
		case info.IsDir():
			if err := p.secrets.check(name, local, info); err != nil {
				yield(item{}, err)
				return
			}
			w := walker{project: p, ctx: ctx, yield: yield}
			w.folder(name, min(depth, maxDepth), splitName(after))
		default:
			yield(p.item(name, info.Mode().Type()), nil)
		}
	}
}

func splitName(name string) []string {
	if name == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(name, "/"), "/")
}

// item returns the item of a name found by a walk.
func (p project) item(name string, mode iofs.FileMode) item {
	found := item{name: name, folder: mode.IsDir()}
	switch {
	case p.secrets.Covers(name):
		found.folder, found.other = false, "closed by tools.deny_files"
	case !mode.IsDir() && !mode.IsRegular():
		found.other = kindOf(mode)
	}
	found.open = func(ctx context.Context) (*file, error) { return p.open(ctx, name) }
	found.size = func() (int64, error) {
		local, err := localName(name)
		if err != nil {
			return 0, err
		}
		info, err := p.root.Lstat(local)
		if err != nil {
			return 0, reason(err)
		}
		return info.Size(), nil
	}
	return found
}
