package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/continuo-log/continuo/internal/config"
)

// The files that deploy the program name settings as variables of the environment: one that is renamed would be ignored there.
func TestDeployedVariablesAreSettings(t *testing.T) {
	loaded, err := config.Load(config.Options{Env: []string{"HOME=/home"}})
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"CONTINUO_IMAGE"} // of the Compose file itself
	for _, setting := range loaded.Settings() {
		known = append(known, setting.Env)
	}
	variable, found := regexp.MustCompile(`\bCONTINUO_[A-Z_]+`), 0
	err = fs.WalkDir(os.DirFS(filepath.Join("..", "..")), "deploy", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		for _, name := range variable.FindAllString(string(text), -1) {
			if found++; !slices.Contains(known, name) {
				t.Errorf("%s names %s, which is no setting", path, name)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Fatalf("%d variables, %v", found, err)
	}
}
