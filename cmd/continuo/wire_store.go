package main

import (
	"context"
	"fmt"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/object"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
)

// The engines of stores, in the terms of OpenTelemetry's conventions.
const (
	systemSQLite   = "sqlite"
	systemPostgres = "postgresql"
)

// wireStore opens only the store, for commands that need nothing else: keys can be revoked while the object store is
// unreachable.
func (a *app) wireStore(ctx context.Context, open storeOpener) (*services, error) {
	settings, err := a.loadSettings()
	if err != nil {
		return nil, err
	}
	store, system, err := open(ctx, settings.Store)
	if err != nil {
		return nil, err
	}
	a.used = settings
	return &services{settings: settings, store: store, system: system, telemetry: &telemetry{}}, nil
}

// storeOpener is openStore or openExisting.
type storeOpener func(ctx context.Context, settings config.StoreConfig) (store maintenance.Store, system string, err error)

// openStore opens the store that the settings name, and creates it if it does not exist.
func openStore(ctx context.Context, settings config.StoreConfig) (store maintenance.Store, system string, err error) {
	return openWith(ctx, settings, false)
}

// openWith opens a PostgreSQL database, or else an SQLite file.
func openWith(ctx context.Context, settings config.StoreConfig, existing bool) (store maintenance.Store, system string, err error) {
	if settings.URL == "" {
		store, err = sqlite.Open(ctx, settings.Path, sqlite.Options{Existing: existing})
		system = systemSQLite
	} else {
		store, err = postgres.Open(ctx, settings.URL, postgres.Options{
			Existing: existing, MaxConns: settings.MaxConnections, StatementTimeout: settings.StatementTimeout, Patience: settings.RetryTimeout, Partitions: settings.Partitions,
		})
		system = systemPostgres
	}
	if err != nil {
		return nil, "", fmt.Errorf("open the store: %w", err)
	}
	return store, system, nil
}

// storeText names the store, without a password.
func storeText(settings config.StoreConfig) string {
	if settings.URL == "" {
		return settings.Path
	}
	return config.WithoutPassword(settings.URL)
}

// openObjects opens the object store of the settings.
func openObjects(ctx context.Context, settings config.ObjectsConfig) (*object.Bucket, error) {
	return object.Open(ctx, settings.Location, object.Options{})
}
