package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/store/postgres"
)

// checks makes the checks of doctor in a running server, and finds the size of its store. Unlike doctor, it does not open
// the store again: SQLite's locks do not allow that in one process.
func (a *app) checks(ctx context.Context, w *services) ([]api.HealthCheck, *api.StoreSize) {
	d := &diagnosis{OK: true, Version: readVersion()}
	d.add("version", good, "continuo %s, %s, %s", d.Version.Version, d.Version.Go, d.Version.Platform)
	d.settings(w.settings)
	if err := w.engine.Ready(ctx); err != nil {
		d.add("store", bad, "it does not answer: %s", err)
	}
	size := d.storeInUse(ctx, w)
	d.rest(ctx, w.settings, a.env, false)
	return d.Checks, size
}

// storeInUse describes the store of a running server.
func (d *diagnosis) storeInUse(ctx context.Context, w *services) *api.StoreSize {
	settings := w.settings.Store
	if settings.URL == "" {
		size := &api.StoreSize{Engine: "sqlite", Bytes: sizeOf(settings.Path) + sizeOf(settings.Path+"-wal")}
		d.add("store", good, "%s, %s", settings.Path, term.Size(size.Bytes))
		d.disk(filepath.Dir(settings.Path))
		return size
	}
	found, err := postgres.Inspect(ctx, settings.URL)
	if err != nil {
		d.add("store", bad, "%s", term.OneLine(fmt.Sprint(err), 500))
		return nil
	}
	d.facts(&found, settings)
	return &api.StoreSize{Engine: "postgresql", Bytes: found.Bytes}
}
