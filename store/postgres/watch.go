package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/backoff"
)

const (
	// watchPause and longestHeedPause are the shortest and the longest time between two attempts to get in touch.
	watchPause    = 100 * time.Millisecond
	maxWatchPause = 5 * time.Second
	// watchProbe is after how long a silence the connection is tried, and heedTimeout how long an answer may take.
	watchProbe   = 10 * time.Second
	watchTimeout = 5 * time.Second
)

var _ continuo.ChangeNotifier = (*Store)(nil)

// WatchChanges is part of continuo.ChangeNotifier. It has a connection of its own, besides those of Options.MaxConns. Behind
// a pooler that gives each transaction another connection of the server's nothing is ever told.
func (s *Store) WatchChanges(ctx context.Context, changed func(conversationIDs []string), lost func()) {
	pause := watchPause
	for ctx.Err() == nil {
		if s.listen(ctx, changed) && ctx.Err() == nil {
			lost()
			pause = watchPause
		}
		if backoff.Wait(ctx, pause/2+rand.N(pause/2)) != nil { // so that not all processes come at once
			return
		}
		pause = min(2*pause, maxWatchPause)
	}
}

// listen passes hints on for as long as it is in touch, and says whether it was.
func (s *Store) listen(ctx context.Context, changed func(conversationIDs []string)) (heard bool) {
	conn, err := s.listener(ctx)
	if err != nil {
		return false
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), watchTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	changed(nil) // whatever happened before the LISTEN
	for {
		payload, err := nextHint(ctx, conn)
		if err != nil {
			return true
		}
		if sender, ids := readHint(payload); s.hints == nil || sender != s.hints.sender {
			changed(ids)
		}
	}
}

// listener returns a new connection on which hints arrive.
func (s *Store) listener(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+hintChannel); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// nextHint waits for a payload. A connection that is silent for long may be dead without anybody having
// said so, and is asked for a sign of life.
func nextHint(ctx context.Context, conn *pgx.Conn) (string, error) {
	for {
		silence, cancel := context.WithTimeout(ctx, watchProbe)
		hint, err := conn.WaitForNotification(silence)
		cancel()
		if err == nil {
			return hint.Payload, nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return "", err
		}
		if err := probe(ctx, conn); err != nil {
			return "", err
		}
	}
}

func probe(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return conn.Ping(ctx)
}
