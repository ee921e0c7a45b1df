package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// NewObjects returns an object store that keeps everything in memory, for the tests of other packages. It is
// safe for concurrent use, and refuses the names that other object stores refuse.
func NewObjects() continuo.ObjectStore { return &objects{kept: map[string]object{}} }

type objects struct {
	mu   sync.Mutex
	kept map[string]object
}

type object struct {
	data []byte // immutable
	at   time.Time
}

// checkObject allows parts of A-Z a-z 0-9 . _ - joined by slashes, none of them . or .. or over 200 bytes.
func checkObject(name string) error {
	valid := len(name) <= 512
	for part := range strings.SplitSeq(name, "/") {
		valid = valid && part != "" && part != "." && part != ".." && len(part) <= 200 &&
			!strings.ContainsFunc(part, func(r rune) bool { return !strings.ContainsRune(objectLetters, r) })
	}
	if !valid {
		return fmt.Errorf("%w: %q is no name of an object", continuo.ErrInvalid, name)
	}
	return nil
}

const objectLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

func (o *objects) PutObject(ctx context.Context, name string, data io.Reader) error {
	if err := checkObject(name); err != nil {
		return err
	}
	read, err := io.ReadAll(data)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("put object %s: %w", name, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept[name] = object{data: read, at: time.Now().UTC()}
	return nil
}

func (o *objects) ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	err := checkObject(name)
	if offset < 0 {
		err = fmt.Errorf("%w: offset %d", continuo.ErrInvalid, offset)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("read object %s: %w", name, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.kept[name]
	if !ok {
		return nil, fmt.Errorf("%w: object %s", continuo.ErrNotFound, name)
	}
	data := found.data[min(offset, int64(len(found.data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (o *objects) DeleteObject(ctx context.Context, name string) error {
	if err := errors.Join(checkObject(name), ctx.Err()); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.kept, name)
	return nil
}

func (o *objects) Objects(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error] {
	return func(yield func(continuo.ObjectInfo, error) bool) {
		if err := errors.Join(checkPrefix(prefix), ctx.Err()); err != nil {
			yield(continuo.ObjectInfo{}, err)
			return
		}
		for _, info := range o.list(prefix) {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// checkPrefix refuses prefixes that no name can begin with.
func checkPrefix(prefix string) error {
	above, last := "x", prefix
	if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
		above, last = prefix[:slash], prefix[slash+1:]
	}
	return errors.Join(checkObject(above), checkObject("x"+last))
}

func (o *objects) list(prefix string) []continuo.ObjectInfo {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []continuo.ObjectInfo
	for _, name := range slices.Sorted(maps.Keys(o.kept)) {
		if strings.HasPrefix(name, prefix) {
			found = append(found, continuo.ObjectInfo{Name: name, Size: int64(len(o.kept[name].data)), ModifiedAt: o.kept[name].at})
		}
	}
	return found
}
