package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
)

// objectsTimeout bounds the check of the objects.
const objectsTimeout = 30 * time.Second

// objects checks the object store: that an object can be written, read and removed.
func (d *diagnosis) objects(ctx context.Context, settings *config.Config) {
	location := settings.Objects.Location
	scheme, rest, isURL := strings.Cut(location, "://")
	folder := location
	if isURL {
		folder = rest
	}
	isFolder := !isURL || scheme == "file"
	if _, err := os.Stat(folder); isFolder && errors.Is(err, fs.ErrNotExist) {
		d.add("objects", good, "%s is not there yet; the first use makes it", location)
		d.folder("objects", folder)
	} else {
		d.useObjects(ctx, settings.Objects)
	}
	if isFolder && settings.Store.URL != "" {
		d.add("objects", warning, "they are in a folder of this machine, and the database serves others too: every program that uses it must see this very folder; s3://BUCKET is seen by all (objects.location)")
	}
}

// useObjects writes, reads and removes an object.
func (d *diagnosis) useObjects(ctx context.Context, settings config.ObjectsConfig) {
	ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
	defer cancel()
	if err := tryObjects(ctx, settings); err != nil {
		d.add("objects", bad, "%s", err)
		return
	}
	d.add("objects", good, "%s can be written", settings.Location)
}

func tryObjects(ctx context.Context, settings config.ObjectsConfig) error {
	bucket, err := openObjects(ctx, settings)
	if err != nil {
		return err
	}
	name, text := "probe/"+rand.Text(), "a probe of continuo doctor"
	err = bucket.PutObject(ctx, name, strings.NewReader(text))
	if err == nil {
		err = errors.Join(readProbe(ctx, bucket, name, text), bucket.DeleteObject(context.WithoutCancel(ctx), name))
	}
	return errors.Join(err, bucket.Close())
}

func readProbe(ctx context.Context, objects continuo.ObjectStore, name, want string) error {
	reader, err := objects.ReadObject(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	have, err := io.ReadAll(reader)
	if err = errors.Join(err, reader.Close()); err == nil && string(have) != want {
		err = fmt.Errorf("the object %s was read as %q, and %q was written", name, have, want)
	}
	return err
}
