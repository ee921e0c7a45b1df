package inspector

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The bundle is committed, so that a build of the program needs Go only: this builds it again from the folder web.
func TestBundleIsWhatTheSourcesGive(t *testing.T) {
	web, err := filepath.Abs(filepath.Join("..", "web"))
	if err != nil {
		t.Fatal(err)
	}
	vite := filepath.Join(web, "node_modules", "vite", "bin", "vite.js")
	if _, err := os.Stat(vite); err != nil {
		t.Skip("SKIPPED: the bundler of the page is not installed: run make npm")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: there is no node in PATH")
	}
	out := t.TempDir()
	command := exec.CommandContext(t.Context(), node, vite, "build", "--outDir", out, "--logLevel", "error")
	command.Dir = web
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("the bundler: %v\n%s", err, said)
	}
	committed, built := bundleFiles(t, "dist"), bundleFiles(t, out)
	for name, data := range built {
		if !bytes.Equal(data, committed[name]) {
			t.Errorf("inspector/dist/%s is not what the sources give: run make web", name)
		}
	}
	for name := range committed {
		if built[name] == nil {
			t.Errorf("inspector/dist/%s is not in a new build: run make web", name)
		}
	}
}

// What a browser fetches of the page, compressed.
func TestBundleIsSmall(t *testing.T) {
	const most = 250 << 10
	var size countingWriter
	for _, data := range bundleFiles(t, "dist") {
		compressed := gzip.NewWriter(&size)
		if _, err := compressed.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := compressed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if size > most {
		t.Errorf("the bundle has %d bytes compressed, at most %d are allowed", size, most)
	}
}

// A page that nothing but this server answers for: no address of another host is fetched by it.
func TestBundleNamesNoOtherHost(t *testing.T) {
	for name, data := range bundleFiles(t, "dist") {
		if strings.HasSuffix(name, ".html") || strings.HasSuffix(name, ".css") {
			for _, address := range []string{"http://", "https://", "url(//", `src="//`, `href="//`} {
				if bytes.Contains(data, []byte(address)) {
					t.Errorf("%s names another host: %q", name, address)
				}
			}
		}
	}
}

type countingWriter int

func (w *countingWriter) Write(data []byte) (int, error) {
	*w += countingWriter(len(data))
	return len(data), nil
}

func bundleFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(root, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
