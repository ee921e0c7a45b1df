package object

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// folder stores each object in a file. All access is through an os.Root, so that no name and no link leads
// out of the folder.
type folder struct {
	root *os.Root
	// sync makes a file or a folder durable.
	sync func(*os.File) error
	// placing is read-locked while an object is given its name, and write-locked while an empty folder is
	// removed: os.Root.Remove would also remove a file that replaced the folder.
	placing sync.RWMutex
}

const (
	newFolder = "~new" // holds objects while they are written
	leftAfter = 24 * time.Hour
)

// openFolder creates missing folders, removes files that a crash left, and checks that the folder can be
// written.
func openFolder(name string, options Options) (*folder, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(name); err != nil {
		return nil, translateFile(err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, translateFile(err)
	}
	f := &folder{root: root, sync: syncFile}
	if err := f.prepare(options.Now()); err != nil {
		return nil, errors.Join(translateFile(err), root.Close())
	}
	return f, nil
}

// makeFolder creates a folder and its parents, durably.
func makeFolder(name string) error {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return fmt.Errorf("%w: it is a file, not a folder", continuo.ErrInvalid)
	} else if err == nil {
		return nil
	}
	above := filepath.Dir(name)
	if above != name {
		if err := makeFolder(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := os.Open(above)
	if errors.Is(err, fs.ErrPermission) {
		return nil // the folder can be entered but not read; it belongs to another user
	}
	if err != nil {
		return err
	}
	return errors.Join(syncFile(dir), dir.Close())
}

func (f *folder) prepare(now time.Time) error {
	if err := f.root.Mkdir(newFolder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	left, err := f.entries(newFolder)
	if err != nil {
		return err
	}
	for _, entry := range left {
		temporary := path.Join(newFolder, entry.Name())
		if info, err := f.root.Lstat(temporary); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > leftAfter {
			if err := f.root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	probe, file, err := f.temporary()
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), f.root.Remove(probe), f.syncFolder("."))
}

func (f *folder) put(_ context.Context, name string, data io.Reader) error {
	temporary, err := f.write(data)
	if err == nil {
		err = f.publish(temporary, name)
	}
	if err != nil && temporary != "" {
		_ = f.root.Remove(temporary) // a later Open removes what remains
	}
	return translateFile(err)
}

// write writes all of data to a new file and syncs it.
func (f *folder) write(data io.Reader) (name string, err error) {
	name, file, err := f.temporary()
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, data)
	if err == nil {
		err = f.sync(file)
	}
	return name, errors.Join(err, file.Close())
}

func (f *folder) temporary() (name string, file *os.File, err error) {
	name = path.Join(newFolder, rand.Text())
	file, err = f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return name, file, err
}

// publish renames a file to its final name, durably.
func (f *folder) publish(temporary, name string) error {
	err := f.rename(temporary, name)
	for range 10 { // another process may remove the empty folder before the file is in it
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = f.rename(temporary, name)
	}
	if err != nil {
		return f.explainPublish(name, err)
	}
	return f.syncUp(path.Dir(name))
}

func (f *folder) rename(temporary, name string) error {
	f.placing.RLock()
	defer f.placing.RUnlock()
	if err := f.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return f.root.Rename(temporary, name)
}

// explainPublish explains an error caused by an object whose name conflicts with this one.
func (f *folder) explainPublish(name string, err error) error {
	if info, statErr := f.root.Lstat(name); statErr == nil && info.IsDir() {
		return fmt.Errorf("%w: the names of other objects begin with %s/, and a folder cannot hold both", continuo.ErrInvalid, name)
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if info, statErr := f.root.Lstat(above); statErr == nil && !info.IsDir() {
			return fmt.Errorf("%w: %s is an object, and a folder cannot hold both", continuo.ErrInvalid, above)
		}
	}
	return err
}

// syncUp makes the names in a folder durable, and those of the folders above it: another call may have
// created them and not yet synced them.
func (f *folder) syncUp(dir string) error {
	for {
		if err := f.syncFolder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

func (f *folder) syncFolder(dir string) error {
	file, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.sync(file), file.Close())
}

// syncFile makes a file durable. On Windows folders cannot be synced; the journal makes them durable.
func syncFile(file *os.File) error {
	if runtime.GOOS == "windows" {
		if info, err := file.Stat(); err != nil || info.IsDir() {
			return err
		}
	}
	return file.Sync()
}

func (f *folder) read(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, translateFile(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = continuo.ErrNotFound
	}
	if err == nil {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(translateFile(err), file.Close())
	}
	if length < 0 {
		return file, nil
	}
	return section{io.LimitReader(file, length), file}, nil
}

// section is a part of a file; closing it closes the file.
type section struct {
	io.Reader
	io.Closer
}

func (f *folder) remove(_ context.Context, name string) error {
	info, err := f.root.Lstat(name)
	if err == nil && info.IsDir() {
		return nil // the beginning of other names
	}
	if err == nil {
		err = f.root.Remove(name)
	}
	if err != nil {
		return translateFile(err)
	}
	f.prune(path.Dir(name))
	return translateFile(f.syncUp(path.Dir(name)))
}

// prune removes the folders that are now empty.
func (f *folder) prune(dir string) {
	f.placing.Lock()
	defer f.placing.Unlock()
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := f.root.Lstat(dir); err != nil || !info.IsDir() || f.root.Remove(dir) != nil {
			return
		}
	}
}

func (f *folder) close() error { return f.root.Close() }

// translateFile maps an error of the file system to the root package's error.
func translateFile(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: nothing was stored; free some space and try again (%w)", continuo.ErrFull, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: make the folder and what is in it readable and writable for this user (%w)", continuo.ErrReadOnly, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w (%w)", continuo.ErrNotFound, err)
	}
	return err
}
