package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// file is one of an archive.
type file struct {
	name string
	mode int64
}

// contents are the files of each archive of a release that is whole. Its platforms are not those of any machine that runs the
// test, so that no binary is run.
func contents() map[string][]file {
	var archive []file
	for _, name := range everywhere {
		archive = append(archive, file{name, 0o644})
	}
	pkg := []file{{"usr/bin/continuo", 0o755}, {"usr/share/man/man1/continuo-serve.1", 0o644}}
	for _, name := range []string{
		"etc/continuo/continuo.yaml", "etc/continuo/continuo.schema.json", "usr/lib/systemd/system/continuo.service",
		"usr/share/bash-completion/completions/continuo", "usr/share/zsh/site-functions/_continuo",
		"usr/share/fish/vendor_completions.d/continuo.fish", "usr/share/doc/continuo/copyright", "usr/share/man/man1/continuo.1",
	} {
		pkg = append(pkg, file{"./" + name, 0o644})
	}
	return map[string][]file{
		"continuo_1_linux_s390x.tar.gz": append(slices.Clone(archive), file{"continuo", 0o755}),
		"continuo_1_linux_s390x.deb":    pkg,
		"continuo_1_linux_s390x.rpm":    nil,
		"continuo_1_linux_s390x.apk":    nil,
		"continuo_1_windows_s390x.zip":  append(slices.Clone(archive), file{"continuo.exe", 0o755}),
	}
}

const modules = `{"bomFormat": "CycloneDX", "components": [{"name": "modernc.org/sqlite"}]}`

// write writes a release, with its checksums.
func write(t *testing.T, archives map[string][]file) string {
	t.Helper()
	files := map[string][]byte{"continuo_1_linux_s390x.cdx.json": []byte(modules), "continuo_1_windows_s390x.cdx.json": []byte(modules)}
	for name, members := range archives {
		switch filepath.Ext(name) {
		case ".gz":
			files[name] = tarOf(t, members)
		case ".zip":
			files[name] = zipOf(t, members)
		case ".deb":
			data := tarOf(t, members)
			files[name] = []byte("!<arch>\n" + member("debian-binary", []byte("2.0")) + member("data.tar.gz", data))
		default:
			files[name] = []byte(name)
		}
	}
	dist := t.TempDir()
	var sums strings.Builder
	for name, data := range files {
		path := filepath.Join(dist, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		sum, err := sumOf(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
	}
	if err := os.WriteFile(filepath.Join(dist, "checksums.txt"), []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dist
}

// member is one of an archive of ar.
func member(name string, data []byte) string {
	text := fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", name, 0, 0, 0, "100644", len(data), data)
	return text + strings.Repeat("\n", len(data)%2)
}

func tarOf(t *testing.T, members []file) []byte {
	t.Helper()
	var data bytes.Buffer
	plain := gzip.NewWriter(&data)
	archive := tar.NewWriter(plain)
	for _, m := range members {
		err := archive.WriteHeader(&tar.Header{Name: m.name, Mode: m.mode, Size: 1, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = archive.Write([]byte("x"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func zipOf(t *testing.T, members []file) []byte {
	t.Helper()
	var data bytes.Buffer
	archive := zip.NewWriter(&data)
	for _, m := range members {
		into, err := archive.Create(m.name)
		if err == nil {
			_, err = into.Write([]byte("x"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

var platforms = []string{"linux/s390x", "windows/s390x"}

func TestAWholeRelease(t *testing.T) {
	if err := (release{dist: write(t, contents()), platforms: platforms, modules: true}).check(); err != nil {
		t.Error(err)
	}
}

// Each file that an archive lacks is named.
func TestWhatArchivesLack(t *testing.T) {
	for archive, members := range contents() {
		for i, lost := range members {
			if lost.name == "man/continuo-serve.1" || lost.name == "usr/share/man/man1/continuo-serve.1" {
				continue // not all pages are known by name
			}
			broken := contents()
			broken[archive] = slices.Delete(slices.Clone(members), i, i+1)
			err := (release{dist: write(t, broken), platforms: platforms, modules: true}).check()
			if want := "lacks " + strings.TrimPrefix(lost.name, "./"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", archive, err, want)
			}
		}
	}
}

func TestWhatIsWrongWithARelease(t *testing.T) {
	for name, test := range map[string]struct {
		archives func(map[string][]file)
		files    func(dist string) error
		want     string
	}{
		"a file that changed": {
			files: func(dist string) error {
				return os.WriteFile(filepath.Join(dist, "continuo_1_linux_s390x.rpm"), []byte("?"), 0o600)
			},
			want: "another sum of continuo_1_linux_s390x.rpm",
		},
		"a file without a sum": {
			files: func(dist string) error { return os.WriteFile(filepath.Join(dist, "more.zip"), nil, 0o600) },
			want:  "checksums.txt lacks more.zip",
		},
		"a sum without a file": {
			files: func(dist string) error { return os.Remove(filepath.Join(dist, "continuo_1_linux_s390x.apk")) },
			want:  "checksums.txt names continuo_1_linux_s390x.apk, which is not there",
		},
		"no checksums": {
			files: func(dist string) error { return os.Remove(filepath.Join(dist, "checksums.txt")) },
			want:  "checksums.txt",
		},
		"no archive for a platform": {
			archives: func(archives map[string][]file) { delete(archives, "continuo_1_windows_s390x.zip") },
			want:     "0 files continuo_*_windows_s390x.zip",
		},
		"no package for Fedora": {
			archives: func(archives map[string][]file) { delete(archives, "continuo_1_linux_s390x.rpm") },
			want:     "0 files continuo_*_linux_s390x.rpm",
		},
		"a package with fewer manual pages": {
			archives: func(archives map[string][]file) {
				archives["continuo_1_linux_s390x.deb"] = slices.DeleteFunc(archives["continuo_1_linux_s390x.deb"], func(f file) bool {
					return strings.HasSuffix(f.name, "continuo-serve.1")
				})
			},
			want: "has 1 manual pages, the archive 2",
		},
		"a binary that may not be executed": {
			archives: func(archives map[string][]file) {
				archive := archives["continuo_1_linux_s390x.tar.gz"]
				archive[len(archive)-1].mode = 0o644
			},
			want: "continuo is not executable: its mode is 644",
		},
		"an empty list of modules": {
			files: func(dist string) error {
				return os.WriteFile(filepath.Join(dist, "continuo_1_windows_s390x.cdx.json"), []byte(`{"bomFormat": "CycloneDX"}`), 0o600)
			},
			want: "continuo_1_windows_s390x.cdx.json lists no modules",
		},
	} {
		t.Run(name, func(t *testing.T) {
			archives := contents()
			if test.archives != nil {
				test.archives(archives)
			}
			dist := write(t, archives)
			if test.files != nil {
				if err := test.files(dist); err != nil {
					t.Fatal(err)
				}
			}
			err := (release{dist: dist, platforms: platforms, modules: true}).check()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A binary for this machine that is no program is refused.
func TestABinaryThatDoesNotRun(t *testing.T) {
	if err := runs([]byte("no program"), runtime.GOOS, runtime.GOARCH, ""); err == nil {
		t.Error("it runs")
	}
}
