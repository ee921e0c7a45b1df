package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/internal/term"
)

type projectsCommand struct {
	List listProjectsCommand `cmd:"" help:"List projects and how many keys they have."`
}

type listProjectsCommand struct {
	JSON bool `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (listProjectsCommand) Help() string {
	return `Lists the projects that were made for API keys, and the default one, with how many keys each has that can be used. What one project has, no other can see.

Examples:

    continuo projects list
    continuo --project acme conversations list`
}

// listedProject is a project in the list.
type listedProject struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at,omitzero"` // zero: always exists
	Keys      int       `json:"keys"`                // valid ones
}

// Run prints the list.
func (l *listProjectsCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireStore(ctx, openExisting)
	if err != nil {
		return err
	}
	defer w.Close()
	projects, err := w.projects(ctx)
	if err != nil {
		return err
	}
	return a.show(l.JSON, api.AllOf(projects), func() {
		t := a.table("project", "created", ">keys")
		for _, project := range projects {
			created := ""
			if !project.CreatedAt.IsZero() {
				created = term.Time(project.CreatedAt)
			}
			t.Add(a.paint.Cyan(term.OneLine(project.ID, 64)), created, term.Number(project.Keys))
		}
		a.printTable(t, a.width)
	})
}

// projects lists all projects, in the order of their ids.
func (w *services) projects(ctx context.Context) ([]listedProject, error) {
	made, err := w.store.Projects(ctx)
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	usable, err := w.usableKeys(ctx)
	if err != nil {
		return nil, err
	}
	isDefault := func(project auth.Project) bool { return project.ID == continuo.DefaultProject }
	if !slices.ContainsFunc(made, isDefault) {
		made = append(made, auth.Project{ID: continuo.DefaultProject})
	}
	listed := make([]listedProject, len(made))
	for i, project := range made {
		listed[i] = listedProject{project.ID, project.CreatedAt, usable[project.ID]}
	}
	slices.SortFunc(listed, func(x, y listedProject) int { return cmp.Compare(x.ID, y.ID) })
	return listed, nil
}
