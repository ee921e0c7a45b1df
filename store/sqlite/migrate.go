package sqlite

import (
	"embed"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// Migrations are named NNNN_what.sql, numbered from 1 without a gap, and never changed once released. PRAGMA
// user_version holds the number of the last one that was applied to a file.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrate brings the schema up to date, in one transaction. Another process may migrate at the same time: the
// second one finds it done.
func migrate(conn *connection, all []string) error {
	return conn.transact(func() error {
		var version int
		if err := conn.row(`PRAGMA user_version`, nil, &version); err != nil {
			return err
		}
		if err := checkVersion(version, len(all)); err != nil || version == len(all) {
			return err
		}
		for i, text := range all[version:] {
			if err := conn.script(text); err != nil {
				return fmt.Errorf("migration %d: %w", version+i+1, err)
			}
		}
		return conn.script(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(all)))
	})
}

func checkVersion(version, known int) error {
	if version > known {
		return fmt.Errorf("%w: its schema has version %d, this program knows versions up to %d; install a newer continuo",
			continuo.ErrNewerSchema, version, known)
	}
	return nil
}
