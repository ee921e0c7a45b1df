package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

const oneRole = "roles: [{role_name: a, system_prompt: Answer.}]\n"

// crewsOf is a folder of crews with these files.
func crewsOf(t *testing.T, files map[string]string) crewFolder {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return crewFolder{dir: dir, known: crew.Known{Connectors: []string{"gemini"}, Models: []string{"demo"}}, builtIn: crew.Example()}
}

func TestAFolderOfCrews(t *testing.T) {
	folder := crewsOf(t, map[string]string{
		"b.yaml": oneRole, "gems.yaml": "id: hers\nroles: [{role_name: a, system_prompt: A., connector: gemini}]\n",
		"bad.yaml": "roles: [{role_name: a, system_prompt: A., connector: gemni}]\n", "one.yaml": "id: same\n" + oneRole, "two.yaml": "id: same\n" + oneRole, "notes.txt": "no",
	})
	all, err := folder.Crews()
	var ids []string
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	if want := []string{"b", "example", "hers"}; !slices.Equal(ids, want) {
		t.Errorf("got %q, want %q", ids, want)
	}
	if err == nil || !strings.Contains(err.Error(), "did you mean gemini?") || !strings.Contains(err.Error(), "the id same is that of") {
		t.Errorf("the problems are %v", err)
	}
	if found, err := folder.Crew("hers"); err != nil || found.Roles[0].Connector != "gemini" {
		t.Errorf("got %+v, %v", found, err)
	}
	if _, err := folder.Crew("exampel"); !errors.Is(err, continuo.ErrNotFound) || !strings.Contains(err.Error(), "did you mean example?") {
		t.Errorf("an unknown one: %v", err)
	}
	for _, id := range []string{"bad", "same"} {
		if _, err := folder.Crew(id); !errors.As(err, new(*crew.Problems)) || errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	// The folder's own takes the place of the built-in one, be it right or not.
	if err := os.WriteFile(filepath.Join(folder.dir, "example.yaml"), []byte("roles: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Crew("example"); !errors.As(err, new(*crew.Problems)) {
		t.Errorf("the folder's example: %v", err)
	}
}

func TestTokensOfRolesComeFromTheEnvironment(t *testing.T) {
	folder := crewsOf(t, map[string]string{"a.yaml": `roles:
  - {role_name: a, system_prompt: A., bot_token: "${TOKEN_A}"}
  - {role_name: b, system_prompt: B., bot_token: "${TOKEN_B}"}
  - {role_name: c, system_prompt: C., bot_token: "${TOKEN_B}"}
  - {role_name: d, system_prompt: D.}
`})
	one, err := folder.Crew("a")
	if err != nil {
		t.Fatal(err)
	}
	tokens, unset := botTokens(one, []string{"TOKEN_A=12:abc", "TOKEN_B= ", "X=1"})
	if !maps.Equal(tokens, map[string]string{"a": "12:abc"}) || !slices.Equal(unset, []string{"TOKEN_B"}) {
		t.Errorf("%d tokens, unset %q", len(tokens), unset)
	}
}
