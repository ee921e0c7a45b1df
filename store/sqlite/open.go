package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
	lib "modernc.org/sqlite/lib"
)

// applicationID marks a file as Continuo's, so that another program's database is never written to:
// "Ctno" in ASCII.
const applicationID = 0x43746e6f

// probeWrite fails when the file is read-only; BEGIN IMMEDIATE does not.
const probeWrite = `UPDATE blobs SET data = data WHERE false`

// prepareFile creates the folder and the file when they are missing, unless the file must exist, and returns
// the absolute path.
func prepareFile(path string, existing bool) (string, error) {
	if path == "" {
		return "", errors.New("open database: the path is empty; name a file")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	if existing {
		return absolute, checkExists(path)
	}
	if err := os.MkdirAll(filepath.Dir(absolute), 0o700); err != nil {
		return "", fmt.Errorf("open %s: make its folder: %w", path, translate(err))
	}
	// SQLite itself would make the file readable for everyone. O_EXCL: this code must never open a file that
	// SQLite may have open, because closing it would drop SQLite's locks.
	file, err := os.OpenFile(absolute, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return absolute, nil
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, translate(err))
	}
	return absolute, nil
}

// checkExists fails when the file is missing or empty; SQLite treats an empty file as a new database.
func checkExists(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s: %w", path, continuo.ErrNotFound)
	case err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return fmt.Errorf("the file %s is empty: %w", path, continuo.ErrNotFound)
	}
	return nil // Open explains other errors
}

// dataSource names the file and the settings of every connection. The journal mode is set later: it changes
// the file, so that the file must first be known to be Continuo's.
func dataSource(path string, options Options) string {
	synchronous := "full"
	if options.Synchronous == Normal {
		synchronous = "normal"
	}
	settings := url.Values{"_pragma": {
		"busy_timeout(" + strconv.FormatInt(options.BusyTimeout.Milliseconds(), 10) + ")",
		"synchronous(" + synchronous + ")",
		"foreign_keys(1)",
		"journal_size_limit(67108864)", // the write-ahead log's file shrinks to this after a burst
	}}
	if options.maxPages > 0 {
		settings.Add("_pragma", "max_page_count("+strconv.Itoa(options.maxPages)+")")
	}
	file := url.URL{Scheme: "file", Path: slashed(path), RawQuery: settings.Encode()}
	return file.String()
}

// slashed returns an absolute path in the form of URLs.
func slashed(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		return "/" + path // a drive letter
	}
	return path
}

// openWriter opens the one connection that writes, and brings the file up to date.
func openWriter(ctx context.Context, db *sql.DB, path string, patience time.Duration) (*connection, error) {
	conn, err := newConnection(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, explain(path, err))
	}
	if err := retryBusy(ctx, patience, func() error { return bringUpToDate(conn) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, explain(path, err)), conn.close())
	}
	return conn, nil
}

// retryBusy retries while other processes open the same new file: SQLite does not apply the busy timeout to a
// change of the journal mode.
func retryBusy(ctx context.Context, patience time.Duration, work func() error) error {
	giveUp := time.NewTimer(patience)
	defer giveUp.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := work()
		if primary, _ := resultCode(err); primary != lib.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-giveUp.C:
			return err
		case <-time.After(pause):
		}
	}
}

func bringUpToDate(conn *connection) error {
	all, err := form.Migrations(migrationFiles)
	if err != nil {
		return err
	}
	if err := checkOwner(conn, len(all)); err != nil {
		return err
	}
	if err := useWriteAheadLog(conn); err != nil {
		return err
	}
	if err := conn.script(`PRAGMA secure_delete = on`); err != nil {
		return err
	}
	if err := migrate(conn, all); err != nil {
		return err
	}
	conn.indexDirty, conn.residue = true, true // true, as an earlier process may have ended before its clean-up
	_, err = conn.exec(probeWrite)
	return err
}

// selectOwner is one statement, so that it reads one snapshot while another process initialises the file.
const selectOwner = `
SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`

// checkOwner refuses files that are not databases, belong to another program, or have the schema of a newer
// version.
func checkOwner(conn *connection, known int) error {
	var application, version, tables int
	if err := conn.row(selectOwner, nil, &application, &version, &tables); err != nil {
		return err
	}
	if application != applicationID && (application != 0 || tables > 0) {
		return errors.New("the file is a database of another program; name another file")
	}
	return checkVersion(version, known)
}

// useWriteAheadLog lets reads continue during a write. The setting is stored in the file.
func useWriteAheadLog(conn *connection) error {
	var mode string
	if err := conn.row(`PRAGMA journal_mode = wal`, nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("its file system or its mode does not allow a write-ahead log (the journal mode stays %q); keep it on a local disk that can be written", mode)
	}
	return nil
}

// explained is an error of SQLite in other words.
type explained struct {
	words string
	err   error
}

func (e *explained) Error() string { return e.words }
func (e *explained) Unwrap() error { return e.err }

// explain finds the cause when SQLite reports only that a file could not be opened.
func explain(path string, err error) error {
	switch primary, _ := resultCode(err); primary {
	case lib.SQLITE_NOTADB:
		return &explained{"the file is not an SQLite database; name another file", err}
	case lib.SQLITE_CANTOPEN:
		if info, statErr := os.Stat(path); statErr == nil && !info.Mode().IsRegular() {
			return &explained{"it is not a regular file; name one, such as continuo.db", err}
		}
		probe, probeErr := os.CreateTemp(filepath.Dir(path), ".continuo-probe-*")
		if probeErr != nil {
			return translate(fmt.Errorf("its folder: %w", probeErr))
		}
		_ = probe.Close()
		_ = os.Remove(probe.Name())
		return fmt.Errorf("%w: make it readable and writable for this user (%w)", continuo.ErrReadOnly, err)
	}
	return translate(err)
}
