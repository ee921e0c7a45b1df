package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/maintenance"
)

type storeCommand struct {
	Copy  storeCopyCommand  `cmd:"" help:"Copy a store into another one: SQLite to PostgreSQL and back."`
	Check storeCheckCommand `cmd:"" help:"Check for gaps, broken references and wrong counts, and say what to do."`
}

// storeAt is the store that a flag names: the URL of a PostgreSQL database or the path of a file. The rest of
// the settings stays.
func storeAt(settings config.StoreConfig, where string) config.StoreConfig {
	if strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://") {
		settings.URL = where
	} else {
		settings.URL, settings.Path = "", where
	}
	return settings
}

// keywords match the form, other than a URL, in which PostgreSQL's tools name a database.
var keywords = regexp.MustCompile(`(^|\s)(host|port|user|password|dbname)\s*=`)

// checkWhere refuses values that cannot name a store. Such a value would be taken for the name of a file; the error
// does not repeat it, since it may contain a password.
func checkWhere(flag, where string) error {
	scheme, _, isURL := strings.Cut(where, "://")
	location, err := url.Parse(where)
	switch {
	case keywords.MatchString(where) || isURL && scheme != "postgres" && scheme != "postgresql":
		return usage("%s: give the path of a file, or the URL of a database as postgres://USER@HOST:PORT/DATABASE", flag)
	case isURL && (err != nil || location.User == nil && strings.Contains(where, "@")):
		return usage("%s: the URL cannot be used: write it as postgres://USER@HOST:PORT/DATABASE, special characters as %%XX", flag)
	}
	return nil
}

// sameStore reports whether two settings name one store. It does not resolve two names of one server: a copy of a store
// into itself finds nothing to do.
func sameStore(x, y config.StoreConfig) bool {
	if x.URL == "" && y.URL == "" {
		return sameFile(x.Path, y.Path)
	}
	return x.URL != "" && y.URL != "" && databaseOf(x.URL) == databaseOf(y.URL)
}

func sameFile(x, y string) bool {
	absoluteX, errX := filepath.Abs(x)
	absoluteY, errY := filepath.Abs(y)
	if errX == nil && errY == nil && absoluteX == absoluteY {
		return true
	}
	infoX, errX := os.Stat(x)
	infoY, errY := os.Stat(y)
	return errX == nil && errY == nil && os.SameFile(infoX, infoY)
}

// databaseOf is the part of a URL that names the database.
func databaseOf(text string) string {
	location, err := url.Parse(text)
	if err != nil {
		return text
	}
	port := location.Port()
	if port == "" {
		port = "5432"
	}
	query := location.Query()
	return strings.Join([]string{location.Hostname(), port, location.Path, query.Get("host"), query.Get("dbname")}, " ")
}

// openExisting opens a store that must exist.
func openExisting(ctx context.Context, settings config.StoreConfig) (store maintenance.Store, system string, err error) {
	settings.Partitions = 0 // whatever it was made with
	store, system, err = openWith(ctx, settings, true)
	if errors.Is(err, continuo.ErrNotFound) {
		err = fmt.Errorf("%w; check --store and the settings (continuo doctor); chat, serve and import make a new store", err)
	}
	return store, system, err
}
