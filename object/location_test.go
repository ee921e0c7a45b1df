package object

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func TestLocations(t *testing.T) {
	for text, want := range map[string]location{
		"data/objects":         {kind: "folder", folder: "data/objects"},
		"/var/objects":         {kind: "folder", folder: "/var/objects"},
		"file:///var/objects":  {kind: "folder", folder: filepath.FromSlash("/var/objects")},
		"file:///with%20space": {kind: "folder", folder: filepath.FromSlash("/with space")},
		"s3://bucket":          {kind: "s3", s3: s3Location{bucket: "bucket"}},
		"s3://bucket/":         {kind: "s3", s3: s3Location{bucket: "bucket"}},
		"s3://my.bucket?endpoint=http://127.0.0.1:9000&region=eu-west-1&prefix=/a/b/": {kind: "s3", s3: s3Location{
			bucket: "my.bucket", endpoint: "http://127.0.0.1:9000", region: "eu-west-1", prefix: "a/b/",
		}},
	} {
		if got, err := parseLocation(text); err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", text, got, err, want)
		}
	}
}

func TestLocationsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", "mem://", "gs://bucket", "azblob://x", "http://bucket", "://", "file://host/folder", "file://", "file:///a?b=c",
		"s3://", "s3:///", "s3://bucket/folder", "s3://bucket:9000", "s3://bucket?endpoint=127.0.0.1:9000", "s3://bucket?endpoint=ftp://x",
		"s3://bucket?endpoint=http://key:hunter2@host", "s3://bucket?Region=x", "s3://bucket?region=a&region=b", "s3://bucket?prefix=../a",
		"s3://bucket?prefix=a%20b", "s3://key:hunter2@bucket", "s3://key:hunter2@bucket?x=%zz", "s3://bucket?secret=hunter2", "s3://key:hunter2@%zz",
		"http://key:hunter2@host/",
	} {
		_, err := Open(t.Context(), text, Options{})
		if !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells the secret: %v", text, err)
		}
	}
}

func TestAFolderByURL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "objects")
	b := openAt(t, "file://"+filepath.ToSlash(dir))
	if err := b.PutObject(t.Context(), "a/b", strings.NewReader("text")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a", "b")); err != nil || string(text) != "text" {
		t.Errorf("%q (%v)", text, err)
	}
}
