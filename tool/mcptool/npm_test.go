package mcptool

import (
	"os"
	"path/filepath"
	"testing"
)

// npmEnv names a folder with node_modules that has the public servers of the protocol's own project.
const npmEnv = "CONTINUO_NPM_DIR"

func TestAThirdPartyServer(t *testing.T) {
	program := filepath.Join(os.Getenv(npmEnv), "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("SKIPPED: there is no @modelcontextprotocol/server-everything in the folder that %s names (%q): run make npm", npmEnv, os.Getenv(npmEnv))
	}
	source := connect(t, Options{Name: "srv", Command: []string{"node", program, "stdio"}})
	if source.Err() != nil {
		t.Fatal(source.Err())
	}
	t.Logf("its tools are %v", names(source.Tools(t.Context())))
	wantResult(t, run(t, find(t, source, "echo"), `{"message":"grüß"}`), false, "grüß")
	wantResult(t, run(t, find(t, source, "echo"), `{}`), true, "message")
	wantResult(t, run(t, find(t, source, "get-tiny-image"), ``), false, "[image, image/png, ")
}
