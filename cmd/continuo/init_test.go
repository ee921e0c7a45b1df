package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/continuo-log/continuo/internal/config"
)

func TestInitWritesSettingsThatLoad(t *testing.T) {
	for _, p := range initProviders() {
		for _, all := range []bool{false, true} {
			if p.id == "other" {
				p.base, p.model = "http://127.0.0.1:8000/v1", "true"
			}
			file := filepath.Join(t.TempDir(), "continuo.yaml")
			if err := os.WriteFile(file, []byte(p.settings(all)), 0o600); err != nil {
				t.Fatal(err)
			}
			settings, err := config.Load(config.Options{File: file, Env: []string{"HOME=" + t.TempDir()}})
			if err != nil {
				t.Fatalf("%s, all %v: %v", p.id, all, err)
			}
			m, err := settings.Model("")
			if err != nil || m.Name != p.id || p.id != "demo" && (m.Model != p.model || m.APIKeyEnv != p.keyEnv || p.base != "" && m.BaseURL != p.base) {
				t.Errorf("%s, all %v: %+v, %v", p.id, all, m, err)
			}
			if known := p.id != "ollama" && p.id != "other" && p.id != "demo"; known != (m.ContextWindow > 0) {
				t.Errorf("%s: its window is %d", p.id, m.ContextWindow)
			}
		}
	}
}
