package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// A release puts files of the checkout beside the binary: those that .goreleaser.yaml names are there. What its hook makes
// (bin/release) is made by commands that other tests run.
func TestFilesOfAReleaseExist(t *testing.T) {
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		Builds []struct {
			Main         string
			Goos, Goarch []string
		}
		Archives []struct{ Files []any }
		Nfpms    []struct{ Contents []struct{ Src string } }
		Dockers  []struct {
			Dockerfile string
			ExtraFiles []string `yaml:"extra_files"`
		}
	}
	if err := yaml.Unmarshal(data, &release); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, build := range release.Builds {
		named = append(named, build.Main)
		if len(build.Goos)*len(build.Goarch) != 6 {
			t.Errorf("%v on %v: a release has six platforms", build.Goos, build.Goarch)
		}
	}
	for _, archive := range release.Archives {
		for _, file := range archive.Files {
			switch file := file.(type) {
			case string:
				named = append(named, file)
			case map[string]any:
				named = append(named, file["src"].(string))
			}
		}
	}
	for _, pkg := range release.Nfpms {
		for _, content := range pkg.Contents {
			named = append(named, content.Src)
		}
	}
	for _, image := range release.Dockers {
		named = append(append(named, image.Dockerfile), image.ExtraFiles...)
	}
	if len(named) < 10 {
		t.Errorf("only %q are named", named)
	}
	for _, name := range named {
		if strings.HasPrefix(name, "bin/release/") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Errorf("a release names %s: %v", name, err)
		}
	}
}
