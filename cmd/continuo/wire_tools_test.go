package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// TestTheProjectFolderIsTheSettingsProjects: a server has callers of many projects, and one folder.
func TestTheProjectFolderIsTheSettingsProjects(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	tools, err := builtIn(&config.Config{Project: "own", Tools: config.ToolsConfig{ProjectDir: folder}}, log, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for project, reads := range map[string]bool{"own": true, "other": false} {
		conversation, err := log.Create(t.Context(), continuo.Conversation{ProjectID: project})
		if err != nil {
			t.Fatal(err)
		}
		for name, arguments := range map[string]string{"fs.read": `{"path": "@project/a.txt"}`, "fs.list": `{"path": "@project/"}`, "fs.search": `{"pattern": "secret"}`} {
			found, _ := tools.Find(name)
			result := found.Run(t.Context(), tool.Call{Conversation: conversation, Arguments: arguments})
			if got := strings.Contains(result.Content, "the secret") || strings.Contains(result.Content, "a.txt  10"); got != reads {
				t.Errorf("%s of project %s returns %q", name, project, result.Content)
			}
		}
	}
}
