package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

const oneStep = "nodes: {a: {brief: Do it.}}\n"

// folderOf is a folder of workflows with these files.
func folderOf(t *testing.T, files map[string]string) workflowFolder {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return workflowFolder{dir: dir, known: workflow.Known{Agents: []string{"ada"}}, builtIn: []byte("id: example\nname: built in\n" + oneStep)}
}

func idsOf(all []*workflow.Workflow) (ids []string) {
	for _, one := range all {
		ids = append(ids, one.ID+" "+one.Name)
	}
	return ids
}

func TestAFolderOfWorkflows(t *testing.T) {
	folder := folderOf(t, map[string]string{
		"b.yaml": oneStep, "a.yml": "name: First\n" + oneStep, "ada.yaml": "id: hers\nnodes: {a: {brief: Do it., agent: ada}}\n",
		".hidden.yaml": "no", "notes.txt": "no", "c.yaml.bak": "no", "d.YAML": "no",
	})
	all, err := folder.Workflows()
	if want := []string{"a First", "b b", "example built in", "hers hers"}; err != nil || !slices.Equal(idsOf(all), want) {
		t.Errorf("got %q, %v; want %q", idsOf(all), err, want)
	}
	if found, err := folder.Workflow("hers"); err != nil || found.Nodes[0].Agent != "ada" {
		t.Errorf("got %+v, %v", found, err)
	}
	_, err = folder.Workflow("exampel")
	if !errors.Is(err, continuo.ErrNotFound) || !strings.Contains(err.Error(), "did you mean example?") {
		t.Errorf("an unknown one: %v", err)
	}

	// A file that is changed, added or removed counts at once.
	for name, text := range map[string]string{"b.yaml": "name: Second\n" + oneStep, "example.yaml": "name: Ours\n" + oneStep} {
		if err := os.WriteFile(filepath.Join(folder.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(folder.dir, "ada.yaml")); err != nil {
		t.Fatal(err)
	}
	all, err = folder.Workflows()
	if want := []string{"a First", "b Second", "example Ours"}; err != nil || !slices.Equal(idsOf(all), want) {
		t.Errorf("got %q, %v; want %q", idsOf(all), err, want)
	}
}

func TestNoFolderOfWorkflows(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "nowhere")} {
		folder := workflowFolder{dir: dir}
		if all, err := folder.Workflows(); err != nil || len(all) != 0 {
			t.Errorf("%q has %q, %v", dir, idsOf(all), err)
		}
		if _, err := folder.Workflow("x"); !errors.Is(err, continuo.ErrNotFound) || !strings.Contains(err.Error(), "there are none") {
			t.Errorf("%q: %v", dir, err)
		}
	}
	file := folderOf(t, map[string]string{"file": ""})
	file.dir = filepath.Join(file.dir, "file")
	if _, err := file.Workflows(); err == nil {
		t.Error("a file was read as a folder")
	}
}

func TestWorkflowsThatAreNotRight(t *testing.T) {
	folder := folderOf(t, map[string]string{
		"good.yaml": oneStep, "broken.yaml": "nodes: {a: {brif: Do it.}}\n", "unknown.yaml": "nodes: {a: {brief: Do it., agent: adda}}\n",
		"one.yaml": "id: same\n" + oneStep, "two.yaml": "id: same\n" + oneStep, "three.yml": "id: same\n" + oneStep,
		"example.yaml": "nodes: []\n", "large.yaml": strings.Repeat("# comment\n", 30_000),
	})
	if err := os.Mkdir(filepath.Join(folder.dir, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(folder.dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	all, err := folder.Workflows()
	if want := []string{"good good"}; !slices.Equal(idsOf(all), want) {
		t.Errorf("got %q, want %q", idsOf(all), want)
	}
	message := strings.ReplaceAll(err.Error(), folder.dir+string(filepath.Separator), "")
	for file, want := range map[string]string{
		"broken.yaml": "brif", "unknown.yaml": "did you mean ada", "folder.yaml": "it is no regular file", "link.yaml": "it cannot be read",
		"large.yaml": "it has more than 262144 bytes", "example.yaml": "", "one.yaml": "the id same is that of three.yml too", "two.yaml": "the id same is that of one.yaml too",
		"three.yml": "the id same is that of two.yaml too",
	} {
		if !slices.ContainsFunc(strings.Split(message, "\n"), func(line string) bool {
			return strings.HasPrefix(line, file+":") && strings.Contains(line, want)
		}) {
			t.Errorf("%s: %q is not reported:\n%s", file, want, message)
		}
	}
	for id, problems := range map[string]bool{"broken": true, "same": true, "large": true, "example": true, "nowhere": false} {
		_, err := folder.Workflow(id)
		if of := new(workflow.Problems); errors.As(err, &of) != problems || errors.Is(err, continuo.ErrNotFound) == problems {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := folder.Workflow("good"); err != nil {
		t.Errorf("one that is right: %v", err)
	}
}
