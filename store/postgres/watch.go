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
	// watchPause and longestHeedPause are the shortest and the longest pause between two attempts to connect.
	watchPause    = 100 * time.Millisecond
	maxWatchPause = 5 * time.Second
	// watchProbe is the silence after which the connection is probed, and heedTimeout bounds the wait for an
	// answer.
	watchProbe   = 10 * time.Second
	watchTimeout = 5 * time.Second
)

var _ continuo.ChangeNotifier = (*Store)(nil)

// WatchChanges is part of continuo.ChangeNotifier. It uses one connection beyond Options.MaxConns. Behind a
// pooler that gives each transaction another connection of the server, no notification arrives.
func (s *Store) WatchChanges(ctx context.Context, changed func(conversationIDs []string), lost func()) {
	pause := watchPause
	for ctx.Err() == nil {
		if s.listen(ctx, changed) && ctx.Err() == nil {
			lost()
			pause = watchPause
		}
		if backoff.Wait(ctx, pause/2+rand.N(pause/2)) != nil { // so that not all processes reconnect at once
			return
		}
		pause = min(2*pause, maxWatchPause)
	}
}

// listen calls changed for notifications while it is connected, and reports whether it was connected.
func (s *Store) listen(ctx context.Context, changed func(conversationIDs []string)) (connected bool) {
	conn, err := s.listener(ctx)
	if err != nil {
		return false
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), watchTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	changed(nil) // for changes before the LISTEN
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

// nextHint waits for a payload. A connection that is silent for long may be dead without an error, and is
// probed.
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
