package object

import (
	"context"
	"os"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/object/objecttest"
)

func TestFolder(t *testing.T) {
	objecttest.Run(t, func(t *testing.T) continuo.ObjectStore { return openAt(t, t.TempDir()) })
}

func TestFolderIsBounded(t *testing.T) { objecttest.Bounded(t, openAt(t, t.TempDir()), 4<<20) }

func TestS3(t *testing.T) {
	objecttest.Run(t, func(t *testing.T) continuo.ObjectStore { return openAt(t, startS3(t).location("")) })
}

func TestS3BelowAPrefix(t *testing.T) {
	objecttest.Run(t, func(t *testing.T) continuo.ObjectStore { return openAt(t, startS3(t).location("team/continuo")) })
}

// TestS3IsBounded has the service in another process, so that what it holds is not counted.
func TestS3IsBounded(t *testing.T) { objecttest.Bounded(t, openAt(t, startS3Process(t)), 48<<20) }

// TestMain lets the processes that tests start do something else.
func TestMain(m *testing.M) {
	if folder := os.Getenv(killChild); folder != "" {
		putForever(folder)
	}
	if os.Getenv(s3Child) != "" {
		serveS3()
	}
	os.Exit(m.Run())
}

func openAt(t *testing.T, location string) *Bucket {
	t.Helper()
	return openWith(t, t.Context(), location, Options{})
}

func openWith(t *testing.T, ctx context.Context, location string, options Options) *Bucket {
	t.Helper()
	b, err := Open(ctx, location, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}
