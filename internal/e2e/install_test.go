package e2e

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What go install MODULE/cmd/continuo@latest does once a tag is pushed: the module as a proxy would serve it, which is the
// files of the repository without the modules below it, is fetched, checked and built. It builds the whole module again, so that only
// the long tests do it; the others look at what most often breaks it.
func TestGoInstallFromATag(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, directive := range []string{"\nreplace", "\nexclude"} { // go install refuses a version that has one
		if strings.Contains(string(manifest), directive) {
			t.Errorf("go.mod has a directive %q: go install MODULE@VERSION refuses that", strings.TrimSpace(directive))
		}
	}
	if os.Getenv("CONTINUO_LONG") == "" {
		return
	}
	const module, version = "github.com/continuo-log/continuo", "v0.0.99"
	proxy := filepath.Join(t.TempDir(), "proxy")
	versions := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]string{"Version": version, "Time": "2026-11-01T00:00:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": manifest} {
		if err := os.WriteFile(filepath.Join(versions, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	zipModule(t, root, module+"@"+version, filepath.Join(versions, version+".zip"))
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Dependencies come from the module cache, which is laid out as a proxy is; the module itself goes to a cache of its own.
	others := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	bin, own := t.TempDir(), filepath.Join(t.TempDir(), "modules")
	install := exec.CommandContext(ctx, "go", "install", "-modcacherw", module+"/cmd/continuo@latest")
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOFLAGS=", "GOBIN="+bin, "GOMODCACHE="+own, "GOPROXY=file://"+proxy+",file://"+others, "GONOSUMDB=*", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, output)
	}
	said, err := exec.CommandContext(ctx, filepath.Join(bin, "continuo"), "version").Output()
	if err != nil || !strings.HasPrefix(string(said), "continuo "+version+" ") {
		t.Errorf("continuo version: %q, %v", said, err)
	}
}

// zipModule writes the files that git knows as the zip of a module, without the modules below it.
func zipModule(t *testing.T, root, prefix, to string) {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("SKIPPED: git does not list the files of the checkout: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
	var nested []string
	for _, name := range names {
		if dir, found := strings.CutSuffix(name, "/go.mod"); found {
			nested = append(nested, dir+"/")
		}
	}
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, lower := zip.NewWriter(file), map[string]string{}
	for _, name := range names {
		if within(name, nested) {
			continue
		}
		if other := lower[strings.ToLower(name)]; other != "" {
			t.Errorf("%s and %s are one file where letters' case does not count: a module must not have both", other, name)
		}
		lower[strings.ToLower(name)] = name
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || info.Mode()&fs.ModeSymlink != 0 { // deleted, or a link, which modules do not have
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		entry, err := out.Create(prefix + "/" + name)
		if err == nil {
			_, err = entry.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Size() > 100<<20 {
		t.Errorf("the module is too large to be fetched: %v, %v", info.Size(), err)
	}
}

func within(name string, dirs []string) bool {
	for _, dir := range dirs {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}
