// Command releasecheck looks at the files of a release that GoReleaser made, before anybody installs them.
//
//	go run ./internal/releasecheck [-commit HASH] [-modules=false] DIST OS/ARCHITECTURE...
//
// It fails where checksums.txt is not that of the files, where an archive lacks the binary, the manual, a completion, the
// licence, the settings or the service, where a package for Debian installs less, where a list of modules is none, or where the
// binary for this machine does not run, needs a dynamic linker, or says another commit.
package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// release is what is looked at.
type release struct {
	dist      string
	platforms []string
	modules   bool   // there is a list of modules for each binary
	commit    string // that the binary says; "" for any
}

func main() {
	r := release{}
	flag.BoolVar(&r.modules, "modules", true, "expect a list of modules for each binary")
	flag.StringVar(&r.commit, "commit", "", "commit that the binary must say")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: releasecheck [-commit HASH] [-modules=false] DIST OS/ARCHITECTURE...")
		os.Exit(2)
	}
	r.dist, r.platforms = flag.Arg(0), flag.Args()[1:]
	if err := r.check(); err != nil {
		fmt.Fprintf(os.Stderr, "the release in %s is not whole:\n%v\n", r.dist, err)
		os.Exit(1)
	}
	fmt.Printf("the release in %s is whole: %s\n", r.dist, strings.Join(r.platforms, ", "))
}

// check returns all that is wrong.
func (r release) check() error {
	found := []error{r.checksums()}
	for _, platform := range r.platforms {
		system, architecture, _ := strings.Cut(platform, "/")
		found = append(found, r.platform(system, architecture))
	}
	return errors.Join(found...)
}

// published are the endings of the files that a release publishes.
var published = []string{".tar.gz", ".zip", ".deb", ".rpm", ".apk", ".cdx.json"}

// checksums compares checksums.txt with the files that are published.
func (r release) checksums() error {
	list, err := os.ReadFile(filepath.Join(r.dist, "checksums.txt"))
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			sums[fields[1]] = fields[0]
		}
	}
	files, err := os.ReadDir(r.dist)
	found := []error{err}
	for _, file := range files {
		name := file.Name()
		if !slices.ContainsFunc(published, func(ending string) bool { return strings.HasSuffix(name, ending) }) {
			continue
		}
		sum, err := sumOf(filepath.Join(r.dist, name))
		switch {
		case err != nil:
			found = append(found, err)
		case sums[name] == "":
			found = append(found, fmt.Errorf("checksums.txt lacks %s", name))
		case sums[name] != sum:
			found = append(found, fmt.Errorf("checksums.txt has another sum of %s", name))
		}
		delete(sums, name)
	}
	for name := range sums {
		found = append(found, fmt.Errorf("checksums.txt names %s, which is not there", name))
	}
	return errors.Join(found...)
}

func sumOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), err
}

// platform looks at the files for one platform.
func (r release) platform(system, architecture string) error {
	binary, ending := "continuo", ".tar.gz"
	if system == "windows" {
		binary, ending = "continuo.exe", ".zip"
	}
	files, err := r.contents(system, architecture, ending)
	if err != nil {
		return err
	}
	found := []error{
		lacking("the archive for "+system+"/"+architecture, files, append(slices.Clone(everywhere), binary)),
		runs(files[binary], system, architecture, r.commit),
	}
	if r.modules {
		found = append(found, r.moduleList(system, architecture))
	}
	if system == "linux" {
		found = append(found, r.packages(architecture, len(pagesIn(files))))
	}
	return errors.Join(found...)
}

// everywhere is what the archives of all platforms have, besides the binary.
var everywhere = []string{
	"LICENSE", "README.md", "CHANGELOG.md", "man/continuo.1", "man/continuo-serve.1",
	"completions/continuo.bash", "completions/continuo.zsh", "completions/continuo.fish",
	"settings/continuo.yaml", "settings/continuo.schema.json", "systemd/continuo.service",
}

// contents reads the archive for a platform.
func (r release) contents(system, architecture, ending string) (map[string][]byte, error) {
	name, err := r.one(system + "_" + architecture + ending)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if ending == ".zip" {
		return unzip(data)
	}
	return untar(bytes.NewReader(data))
}

// one is the name of the only file with an ending.
func (r release) one(ending string) (string, error) {
	names, err := filepath.Glob(filepath.Join(r.dist, "continuo_*_"+ending))
	if err != nil || len(names) != 1 {
		return "", fmt.Errorf("%d files continuo_*_%s, want 1", len(names), ending)
	}
	return names[0], nil
}

// programs are the names of the binary in archives and packages.
var programs = []string{"continuo", "usr/bin/continuo"}

func untar(compressed io.Reader) (map[string][]byte, error) {
	plain, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(header.Name)
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if slices.Contains(programs, name) && header.Mode&0o111 != 0o111 {
			return nil, fmt.Errorf("%s is not executable: its mode is %o", name, header.Mode)
		}
		if files[name], err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
}

func unzip(data []byte) (map[string][]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, file := range archive.File {
		if file.Mode().IsDir() {
			continue
		}
		if files[path.Clean(file.Name)], err = fs.ReadFile(archive, file.Name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func lacking(what string, files map[string][]byte, names []string) error {
	var found []error
	for _, name := range names {
		if len(files[name]) == 0 {
			found = append(found, fmt.Errorf("%s lacks %s", what, name))
		}
	}
	return errors.Join(found...)
}

// pagesIn are the manual pages among files.
func pagesIn(files map[string][]byte) (pages []string) {
	for name := range files {
		if strings.HasSuffix(name, ".1") {
			pages = append(pages, name)
		}
	}
	return pages
}

// runs runs the binary if it is for this machine: it says its version.
func runs(binary []byte, system, architecture, commit string) error {
	if system != runtime.GOOS || architecture != runtime.GOARCH || len(binary) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "releasecheck")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "continuo")
	if err := os.WriteFile(program, binary, 0o700); err != nil { //nolint:gosec // it is run
		return err
	}
	if system == "linux" {
		if err := isStatic(binary); err != nil {
			return err
		}
	}
	command := exec.Command(program, "version", "--json") //nolint:gosec,noctx // the binary of the release
	command.Env = []string{"HOME=" + dir}
	said, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("continuo version: %w\n%s", err, said)
	}
	var version struct{ Version, Commit, Platform string }
	if err := json.Unmarshal(said, &version); err != nil {
		return fmt.Errorf("continuo version: %w\n%s", err, said)
	}
	if version.Version == "" || version.Platform != system+"/"+architecture || commit != "" && version.Commit != commit {
		return fmt.Errorf("continuo version says %s; want one for %s/%s, of commit %q", bytes.TrimSpace(said), system, architecture, commit)
	}
	return nil
}

func isStatic(binary []byte) error {
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("read the binary: %w", err)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return errors.New("the binary needs a dynamic linker")
		}
	}
	return nil
}

// moduleList looks at the list of modules (CycloneDX) of a platform's binary.
func (r release) moduleList(system, architecture string) error {
	name, err := r.one(system + "_" + architecture + ".cdx.json")
	if err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var list struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ Name string }
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	if list.BOMFormat != "CycloneDX" || len(list.Components) == 0 {
		return fmt.Errorf("%s lists no modules: format %q, %d components", filepath.Base(name), list.BOMFormat, len(list.Components))
	}
	return nil
}

// packages looks at the packages for Linux. Pages is how many manual pages they have.
func (r release) packages(architecture string, pages int) error {
	var found []error
	for _, ending := range []string{".rpm", ".apk"} {
		_, err := r.one("linux_" + architecture + ending)
		found = append(found, err)
	}
	name, err := r.one("linux_" + architecture + ".deb")
	if err != nil {
		return errors.Join(append(found, err)...)
	}
	files, err := debian(name)
	if err != nil {
		return errors.Join(append(found, fmt.Errorf("%s: %w", filepath.Base(name), err))...)
	}
	found = append(found, lacking(filepath.Base(name), files, []string{
		"usr/bin/continuo", "etc/continuo/continuo.yaml", "etc/continuo/continuo.schema.json", "usr/lib/systemd/system/continuo.service",
		"usr/share/bash-completion/completions/continuo", "usr/share/zsh/site-functions/_continuo",
		"usr/share/fish/vendor_completions.d/continuo.fish", "usr/share/doc/continuo/copyright", "usr/share/man/man1/continuo.1",
	}))
	if n := len(pagesIn(files)); n != pages {
		found = append(found, fmt.Errorf("%s has %d manual pages, the archive %d", filepath.Base(name), n, pages))
	}
	return errors.Join(found...)
}

// debian reads the files that a package installs: the member data.tar.gz of an archive of ar.
func debian(name string) (map[string][]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := bufio.NewReader(file)
	if magic := make([]byte, 8); !readFull(reader, magic) || string(magic) != "!<arch>\n" {
		return nil, errors.New("it is no archive of ar")
	}
	for {
		header := make([]byte, 60)
		if !readFull(reader, header) {
			return nil, errors.New("it has no data.tar.gz")
		}
		var size int64
		if _, err := fmt.Sscan(string(header[48:58]), &size); err != nil {
			return nil, fmt.Errorf("the size of a member: %w", err)
		}
		if strings.HasPrefix(string(header), "data.tar.gz") {
			return untar(io.LimitReader(reader, size))
		}
		if _, err := io.CopyN(io.Discard, reader, size+size%2); err != nil {
			return nil, err
		}
	}
}

func readFull(reader io.Reader, into []byte) bool {
	_, err := io.ReadFull(reader, into)
	return err == nil
}
