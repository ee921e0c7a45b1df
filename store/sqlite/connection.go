package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// connection is one connection with its prepared statements. It belongs to one goroutine at a time.
//
// Statements run to their end even if the caller is cancelled: they are short, and interrupting one would
// cost a goroutine for each.
//
// Statements have LIMIT +? instead of LIMIT ?: SQLite looks at a limit that is a parameter and plans the statement
// again at each execution, which takes longer than a small query.
type connection struct {
	conn       *sql.Conn
	prepared   map[string]*sql.Stmt // by SQL text, all of which are constants of this package
	indexDirty bool                 // removed documents may still have terms in the index
	alone      bool                 // the transaction has one change: any error rolls it back
	residue    bool                 // what was redacted or deleted may still be in the write-ahead log
	removed    bool                 // something was redacted or deleted since the last commit
}

func newConnection(ctx context.Context, db *sql.DB) (*connection, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, prepared: map[string]*sql.Stmt{}}, nil
}

func (c *connection) close() error {
	var errs []error
	for _, statement := range c.prepared {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

func (c *connection) statement(text string) (*sql.Stmt, error) {
	if statement := c.prepared[text]; statement != nil {
		return statement, nil
	}
	statement, err := c.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	c.prepared[text] = statement
	return statement, nil
}

// exec runs a statement and returns how many rows it changed.
func (c *connection) exec(text string, args ...any) (int64, error) {
	statement, err := c.statement(text)
	if err != nil {
		return 0, err
	}
	result, err := statement.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls each for every row of the result.
func (c *connection) query(text string, args []any, each func(*sql.Rows) error) error {
	statement, err := c.statement(text)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := each(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// row reads one row; sql.ErrNoRows when there is none.
func (c *connection) row(text string, args []any, into ...any) error {
	statement, err := c.statement(text)
	if err != nil {
		return err
	}
	return statement.QueryRowContext(context.Background(), args...).Scan(into...)
}

// script runs several statements that take no arguments.
func (c *connection) script(text string) error {
	_, err := c.conn.ExecContext(context.Background(), text)
	return err
}

// transact runs work between BEGIN and COMMIT. It takes the write lock at once: a transaction that becomes a
// writer later can find that what it read is out of date.
func (c *connection) transact(work func() error) error {
	if _, err := c.exec(`BEGIN IMMEDIATE`); err != nil {
		return &beginError{err}
	}
	err := work()
	if err == nil {
		_, err = c.exec(`COMMIT`)
	}
	if err != nil {
		c.rollBack()
	}
	return err
}

// rollBack ends a transaction. After some errors SQLite has already rolled back, and this ROLLBACK fails with that
// message; it cannot fail otherwise.
func (c *connection) rollBack() {
	_, _ = c.exec(`ROLLBACK`)
}

// snapshot runs several queries on one snapshot of the database.
func (c *connection) snapshot(work func() error) error {
	if _, err := c.exec(`BEGIN`); err != nil {
		return err
	}
	err := work()
	_, endErr := c.exec(`COMMIT`)
	return errors.Join(err, endErr)
}

// inSavepoint runs work that may return a verdict (see isVerdict) after it has written: its writes are rolled
// back, and the transaction can continue. A change that is alone in its transaction needs none.
func (c *connection) inSavepoint(work func() error) error {
	if c.alone {
		return work()
	}
	if _, err := c.exec(`SAVEPOINT work`); err != nil {
		return err
	}
	err := work()
	if err != nil && !isVerdict(err) {
		return err // the whole transaction is rolled back; SQLite may have done so already
	}
	if err != nil {
		if _, undoErr := c.exec(`ROLLBACK TO work`); undoErr != nil {
			return undoErr
		}
	}
	if _, releaseErr := c.exec(`RELEASE work`); releaseErr != nil {
		return releaseErr
	}
	return err
}

// beginError means that a transaction did not begin, so that there is no use in trying its parts one by one.
type beginError struct{ error }

func (e *beginError) Error() string { return fmt.Sprintf("begin: %v", e.error) }
func (e *beginError) Unwrap() error { return e.error }
