package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PostgreSQL's error codes (appendix A of its manual).
const (
	featureNotSupported   = "0A000"
	divisionByZero        = "22012" // raised when a statement of this package rolls itself back
	invalidText           = "22021" // a character that the encoding does not have, or NUL
	untranslatableText    = "22P05"
	uniqueViolation       = "23505"
	readOnlyTransaction   = "25006"
	idleInTransaction     = "25P03" // the connection is gone
	unknownStatement      = "26000"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	insufficientPrivilege = "42501"
	diskFull              = "53100"
	tooManyConnections    = "53300"
	programLimit          = "54000"
	lockNotAvailable      = "55P03"
	queryCanceled         = "57014"
	adminShutdown         = "57P01"
	crashShutdown         = "57P02"
	cannotConnectNow      = "57P03"
	unknownDatabase       = "3D000"
)

// codeOf returns PostgreSQL's code of an error, "" for other errors.
func codeOf(err error) string {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return failure.Code
	}
	return ""
}

// lostError means that a connection could not be made, or was lost.
type lostError struct {
	err  error
	sent bool // the change may have been committed
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// isVerdict reports whether an error is the definite result of an operation: it wrote nothing, and a retry
// would give the same result.
func isVerdict(err error) bool {
	var lost *lostError
	if errors.As(err, &lost) {
		return false
	}
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

// passes reports whether a retry of a failed operation may succeed: the server was unreachable, a failover is
// in progress, or two transactions conflicted.
func passes(err error) bool {
	switch code := codeOf(err); code {
	case "":
		var lost *lostError
		return errors.Is(err, errRetry) || errors.As(err, &lost) && !errors.Is(err, context.Canceled)
	case serializationFailure, deadlockDetected, readOnlyTransaction, tooManyConnections, cannotConnectNow,
		adminShutdown, crashShutdown, unknownStatement, divisionByZero, idleInTransaction:
		return true
	case featureNotSupported:
		return strings.Contains(err.Error(), "cached plan") // the schema was changed; the retry plans again
	default:
		return strings.HasPrefix(code, "08")
	}
}

// failed adds the name of the database to its errors; the caller adds its own text to verdicts.
func (s *Store) failed(err error) error {
	if err == nil || isVerdict(err) {
		return err
	}
	return fmt.Errorf("%s: %w", s.location, translate(err))
}

// translate maps an error of the database to the root package's error.
func translate(err error) error {
	withAdvice := func(sentinel error, advice string) error {
		return fmt.Errorf("%w: %s (%w)", sentinel, advice, onOneLine{err})
	}
	var lost *lostError
	if errors.As(err, &lost) && lost.sent {
		return withAdvice(continuo.ErrUnavailable, "what was to be written may be there or not; look before it is written again")
	}
	switch code := codeOf(err); code {
	case diskFull:
		return withAdvice(continuo.ErrFull, "nothing was written; free some space on its server and try again")
	case readOnlyTransaction:
		return withAdvice(continuo.ErrReadOnly, "this server is a standby or takes no writes; name the primary, or all servers with target_session_attrs=read-write")
	case tooManyConnections:
		return withAdvice(continuo.ErrUnavailable, "all of its connections are taken; lower store.max_connections of the replicas, or raise its max_connections")
	case programLimit:
		return withAdvice(continuo.ErrInvalid, "a key, an id or a list is larger than PostgreSQL takes; make it shorter")
	case invalidText, untranslatableText:
		return withAdvice(continuo.ErrInvalid, "PostgreSQL keeps only valid UTF-8 without NUL characters; take those out")
	case uniqueViolation:
		return withAdvice(continuo.ErrExists, "a row of this key")
	case lockNotAvailable:
		return fmt.Errorf("another transaction kept it locked for too long; try again, or end that one: %w", err)
	case queryCanceled:
		return fmt.Errorf("a statement took too long or was cancelled; look at the load of the database, or raise store.statement_timeout: %w", err)
	case insufficientPrivilege:
		return fmt.Errorf("the role of the URL may not do this; grant it what it needs, or name the role that made the schema: %w", err)
	case unknownDatabase:
		return fmt.Errorf("there is no such database; create it, or check store.url: %w", err)
	default:
		if passes(err) || code == "" && errors.As(err, &lost) {
			return withAdvice(continuo.ErrUnavailable, "start it, or check store.url")
		}
		return err
	}
}

// onOneLine is an error of the driver without its line ends: the driver puts each address that it tried on a
// line of its own, and repeats an address that it tried with and without TLS. Of an address it keeps why it failed.
type onOneLine struct{ error }

// driverWords are what the driver and the packages of the network put before the reason.
var driverWords = regexp.MustCompile("failed to connect to `[^`]*`:|dial error: dial \\S+ \\S+: (connect: )?|hostname resolving error: lookup \\S+ on \\S+: ")

func (e onOneLine) Error() string {
	var lines []string
	for line := range strings.Lines(driverWords.ReplaceAllString(e.error.Error(), "")) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

func (e onOneLine) Unwrap() error { return e.error }

// isTaken reports whether a row was refused because its key is taken.
func isTaken(err error) bool { return codeOf(err) == uniqueViolation }

// orNotFound returns ErrNotFound when no row was found.
func orNotFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return continuo.ErrNotFound
	}
	return err
}

// unlessNotFound returns nil for ErrNotFound, and any other error as it is.
func unlessNotFound(err error) error {
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	return err
}
