package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/continuo-log/continuo/internal/config"
)

// TestTheSettingsPageIsTrue keeps docs/settings.md equal to what the program knows. UPDATE_DOCS=1 writes it.
func TestTheSettingsPageIsTrue(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "settings.md")
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(config.Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil || string(page) != config.Markdown() {
		t.Errorf("docs/settings.md is not what the program writes (%v): run UPDATE_DOCS=1 go test ./internal/config", err)
	}
}
