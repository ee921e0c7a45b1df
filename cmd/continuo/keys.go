package main

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/internal/term"
)

type keysCommand struct {
	Create createKeyCommand `cmd:"" help:"Create an API key, and show it once."`
	List   listKeysCommand  `cmd:"" help:"List API keys, without their secrets."`
	Budget budgetKeyCommand `cmd:"" help:"Set what the requests of an API key may use."`
	Revoke revokeKeyCommand `cmd:"" help:"Revoke API keys."`
}

type createKeyCommand struct {
	User    string `placeholder:"USER" help:"Bind the key to one user: it reaches that user's conversations only, and those that it begins are the user's. Default: all of the project."`
	Name    string `placeholder:"TEXT" help:"What the key is for."`
	Expires *age   `placeholder:"DURATION" help:"How long it is valid, such as 30d, 2w or 36h. Default: no expiry."`
	budgetFlags
	JSON bool `help:"Write JSON: {api_key, key}."`
}

func (createKeyCommand) Help() string {
	return `Makes a key with which a program acts in one project (--project), which is made when it is new. The key alone goes to stdout. It is shown this once: the store has a hash of it only. The first key closes the server: from then on every caller needs one.

Examples:

    continuo keys create --name laptop
    continuo keys create --user ada@example.com --name phone
    continuo keys create --project acme --name ci --expires 30d > ~/continuo.key
    continuo keys create --name intern --budget-tokens 1M --budget-cost 5 --budget-period day
    curl -s localhost:8787/chat -H "Authorization: Bearer $(cat ~/continuo.key)" -d '{"message": "Hello"}'`
}

// maxKeyName bounds a key's name, in Unicode characters.
const maxKeyName = 100

// Run makes the key.
func (c *createKeyCommand) Run(ctx context.Context, a *app) error {
	switch {
	case utf8.RuneCountInString(c.Name) > maxKeyName || !utf8.ValidString(c.Name):
		return usage("--name: give at most %d characters of valid UTF-8", maxKeyName)
	}
	if err := continuo.CheckUserID(c.User); err != nil {
		return usage("--user: %v", err)
	}
	budget, err := c.budget()
	if err != nil {
		return err
	}
	w, err := a.wireStore(ctx, openStore)
	if err != nil {
		return err
	}
	defer w.Close()
	newProject, err := w.needProject(ctx)
	if err != nil {
		return err
	}
	before, err := w.store.Keys(ctx, "")
	if err != nil {
		return fmt.Errorf("list API keys: %w", err)
	}
	key, shown := auth.New(time.Now())
	key.ProjectID, key.UserID, key.Name = w.settings.Project, c.User, c.Name
	key.Budget = budget
	if c.Expires != nil {
		key.ExpiresAt = key.CreatedAt.Add(time.Duration(*c.Expires))
	}
	audit.Targets(ctx, key.ID)
	if err := w.store.CreateKey(ctx, key); err != nil {
		return fmt.Errorf("keep API key %s: %w", key.ID, err)
	}
	return a.show(c.JSON, map[string]any{"api_key": shown, "key": shownKey{key, stateOf(&key)}}, func() {
		a.print("%s", shown)
		a.explainKey(&key, newProject, len(before) == 0)
	})
}

// needProject makes the project of the settings if it is new, and says so. The default one always exists.
func (w *services) needProject(ctx context.Context) (isNew bool, err error) {
	id := w.settings.Project
	if err := auth.CheckProject(id); err != nil || id == continuo.DefaultProject {
		return false, err
	}
	err = w.store.CreateProject(ctx, auth.Project{ID: id, CreatedAt: time.Now().UTC()})
	if errors.Is(err, continuo.ErrExists) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("make project %s: %w", id, err)
	}
	return true, nil
}

// explainKey prints an explanation beside a new key.
func (a *app) explainKey(key *auth.Key, newProject, first bool) {
	project := "project " + key.ProjectID
	if newProject {
		project = "the new " + project
	}
	a.note("Key %s of %s. It is not shown again: put it where the program finds it.", key.ID, project)
	if key.UserID != "" {
		a.note("It reaches the conversations of the user %s only.", term.OneLine(key.UserID, maxKeyName))
	}
	if !key.ExpiresAt.IsZero() {
		a.note("It expires at %s.", term.Time(key.ExpiresAt))
	}
	if text := budgetText(key.Budget); text != "" {
		a.note("Its requests to models may use %s.", text)
	}
	if first {
		a.note("It is the first one: from now on the server wants a key from every caller (server.keys).")
	}
}

// shownKey is a key in JSON output.
type shownKey struct {
	auth.Key
	State string `json:"state"`
}

// stateOf describes whether a key is valid.
func stateOf(key *auth.Key) string {
	switch {
	case !key.RevokedAt.IsZero():
		return "revoked"
	case !key.Usable(time.Now()):
		return "expired"
	}
	return "active"
}

type listKeysCommand struct {
	JSON bool `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (listKeysCommand) Help() string {
	return `Lists the API keys of all projects, or with --project of one, those that are over too. Nothing that is shown can be used as a key.

Examples:

    continuo keys list
    continuo keys list --project acme --json | jq -r '.data[] | select(.state == "active").id'`
}

// Run prints the list.
func (l *listKeysCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireStore(ctx, openExisting)
	if err != nil {
		return err
	}
	defer w.Close()
	project := ""
	if a.globals.Project != nil {
		project = w.settings.Project
	}
	keys, err := w.store.Keys(ctx, project)
	if err != nil {
		return fmt.Errorf("list API keys: %w", err)
	}
	if l.JSON {
		shown := []shownKey{}
		for _, key := range keys {
			shown = append(shown, shownKey{key, stateOf(&key)})
		}
		return a.json(api.AllOf(shown))
	}
	if len(keys) == 0 {
		a.note("No API keys. Make one with: continuo keys create")
		return nil
	}
	a.printKeys(keys)
	return nil
}

func (a *app) printKeys(keys []auth.Key) {
	t := a.table("key", "project", "user", "state", "created", "expires", "budget", "name")
	for _, key := range keys {
		expires, paint := "never", a.paint.Green
		if !key.ExpiresAt.IsZero() {
			expires = term.Time(key.ExpiresAt)
		}
		if stateOf(&key) != "active" {
			paint = a.paint.Red
		}
		t.Add(a.paint.Cyan(key.ID), term.OneLine(key.ProjectID, 64), term.OneLine(key.UserID, 64), paint(stateOf(&key)), term.Time(key.CreatedAt), expires, budgetText(key.Budget), term.OneLine(key.Name, maxKeyName))
	}
	a.printTable(t, a.width)
}

type revokeKeyCommand struct {
	Keys []string `arg:"" name:"key" help:"Which ones: ids, or whole keys."`
}

func (revokeKeyCommand) Help() string {
	return `Revokes API keys permanently. Every server on the store refuses them within five seconds; turns that they have begun go on, and streams that are open stay so until their turn's end. Where no usable key is left, the server lets nobody in.

Examples:

    continuo keys revoke 7k3mqv0z2x9a
    continuo keys list --project acme --json | jq -r '.data[].id' | xargs continuo keys revoke`
}

// Run revokes the keys, if all of them exist.
func (r *revokeKeyCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireStore(ctx, openExisting)
	if err != nil {
		return err
	}
	defer w.Close()
	var found []auth.Key
	for _, name := range r.Keys {
		key, err := w.findKey(ctx, a, name)
		if err != nil {
			return err
		}
		found = append(found, key)
	}
	for _, key := range found {
		audit.Targets(ctx, key.ID)
		revoked, err := w.store.RevokeKey(ctx, key.ID, time.Now().UTC())
		if err != nil {
			return fmt.Errorf("revoke API key %s: %w", key.ID, err)
		}
		word := "revoked"
		if !key.RevokedAt.IsZero() {
			word = "was revoked already:"
		}
		named := revoked.ID
		if revoked.Name != "" {
			named += " (" + term.OneLine(revoked.Name, maxKeyName) + ")"
		}
		a.print("%s %s of project %s", word, named, revoked.ProjectID)
	}
	return w.warnWithoutKeys(ctx, a)
}

// findKey finds a key by its id or its full text, in the project of the flags if there is one.
func (w *services) findKey(ctx context.Context, a *app, name string) (auth.Key, error) {
	id := auth.IDOf(name)
	key, err := w.store.Key(ctx, id)
	if err == nil && a.globals.Project != nil && key.ProjectID != w.settings.Project {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return auth.Key{}, fmt.Errorf("API key %.40q: %w; continuo keys list shows what there is", id, err)
	}
	return key, nil
}

// warnWithoutKeys warns if no valid key is left.
func (w *services) warnWithoutKeys(ctx context.Context, a *app) error {
	usable, err := w.usableKeys(ctx)
	if err == nil && usable[""] == 0 {
		a.note("No usable key is left: the server refuses every request until there is one (continuo keys create).")
	}
	return err
}

// usableKeys counts valid keys, by project and, under "", all.
func (w *services) usableKeys(ctx context.Context) (map[string]int, error) {
	keys, err := w.store.Keys(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list API keys: %w", err)
	}
	counts := map[string]int{}
	for _, key := range keys {
		if key.Usable(time.Now()) {
			counts[key.ProjectID]++
			counts[""]++
		}
	}
	return counts, nil
}
