package storetest

import (
	"bytes"
	"context"
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

// NewObjects makes an object store that keeps everything in memory, for the tests of other packages. It is
// safe for concurrent use.
func NewObjects() continuo.ObjectStore { return &objects{kept: map[string]object{}} }

type objects struct {
	mu   sync.Mutex
	kept map[string]object
}

type object struct {
	data []byte // never changed once it is kept
	at   time.Time
}

func (o *objects) PutObject(ctx context.Context, name string, data io.Reader) error {
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
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.kept[name]
	if !ok {
		return nil, fmt.Errorf("%w: object %s", continuo.ErrNotFound, name)
	}
	data := found.data[min(max(offset, 0), int64(len(found.data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (o *objects) DeleteObject(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.kept, name)
	return nil
}

func (o *objects) Objects(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error] {
	return func(yield func(continuo.ObjectInfo, error) bool) {
		if err := ctx.Err(); err != nil {
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
