package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	continuo "github.com/continuo-log/continuo"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// isVerdict reports whether an error is the definite result of a change that wrote nothing, so that other
// changes of the same transaction can continue.
func isVerdict(err error) bool {
	var conflict *continuo.ConflictError
	for _, verdict := range []error{
		continuo.ErrNotFound, continuo.ErrExists, continuo.ErrInvalid, continuo.ErrClosed,
		continuo.ErrBusy, continuo.ErrLeaseLost, continuo.ErrNotRunning, continuo.ErrArchived,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, verdict) {
			return true
		}
	}
	return errors.As(err, &conflict)
}

// translate maps an error of the driver or of the file system to the root package's error.
func translate(err error) error {
	switch primary, code := resultCode(err); {
	case primary == lib.SQLITE_FULL, code == lib.SQLITE_IOERR_WRITE, code == lib.SQLITE_IOERR_SHMSIZE, errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: nothing was written; free some space and try again (%w)", continuo.ErrFull, err)
	case primary == lib.SQLITE_READONLY, primary == lib.SQLITE_PERM, errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: make the file and its folder writable for this user (%w)", continuo.ErrReadOnly, err)
	case primary == lib.SQLITE_BUSY:
		return fmt.Errorf("another process kept the database locked for too long; try again, or stop it: %w", err)
	case isCorrupt(err):
		return fmt.Errorf("the file is damaged; restore a backup, or save what can be read with sqlite3's .recover: %w", err)
	}
	return err
}

// resultCode returns SQLite's primary and extended result codes, zeros for other errors.
func resultCode(err error) (primary, code int) {
	var failure *driver.Error
	if !errors.As(err, &failure) {
		return 0, 0
	}
	return failure.Code() & 0xff, failure.Code()
}

// isCorrupt reports whether SQLite found that the file is damaged.
func isCorrupt(err error) bool {
	primary, _ := resultCode(err)
	return primary == lib.SQLITE_CORRUPT
}

// isTaken reports whether a row was refused because its key is taken.
func isTaken(err error) bool {
	_, code := resultCode(err)
	return code == lib.SQLITE_CONSTRAINT_UNIQUE || code == lib.SQLITE_CONSTRAINT_PRIMARYKEY
}
