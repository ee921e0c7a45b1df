package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Open connects to the database of a URL such as postgres://USER:PASSWORD@HOST:PORT/DATABASE and brings its
// schema up to date. A URL may name several servers: the first that can be written to is used, also for
// reads. While the database cannot be reached, Open retries for Options.Patience. It fails with
// continuo.ErrUnavailable, continuo.ErrReadOnly and continuo.ErrNewerSchema. No error shows the password. The
// caller must Close the store.
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	options = withDefaults(options)
	config, err := configure(url, options)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	s := &Store{location: locationOf(config.ConnConfig.Config), options: options, pool: pool, gate: newGate()}
	if err := s.bringUpToDate(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open %s: %w", s.location, err)
	}
	if !options.NoNotify {
		s.hints = newHints(pool)
	}
	s.writers = newWriters(config, options)
	s.close = sync.OnceValue(s.closeAll)
	return s, nil
}

func withDefaults(options Options) Options {
	orElse := func(value *time.Duration, fallback time.Duration) {
		if *value == 0 {
			*value = fallback
		}
	}
	orElse(&options.StatementTimeout, 10*time.Second)
	orElse(&options.LockTimeout, 5*time.Second)
	orElse(&options.Patience, 15*time.Second)
	if options.MaxConns == 0 {
		options.MaxConns = 16
	}
	if options.Writers == 0 {
		options.Writers = 2
	}
	if options.Name == "" {
		options.Name = "continuo"
	}
	return options
}

// configure returns the pool's configuration.
func configure(text string, options Options) (*pgxpool.Config, error) {
	if options.Writers < 1 || options.MaxConns < options.Writers+2 {
		return nil, fmt.Errorf("open PostgreSQL: %w: %d writers need at least %d connections; there are to be %d",
			continuo.ErrInvalid, options.Writers, max(options.Writers, 1)+2, options.MaxConns)
	}
	if options.Partitions < 0 || options.Partitions > maxPartitions {
		return nil, fmt.Errorf("open PostgreSQL: %w: %d partitions; choose 0 to %d", continuo.ErrInvalid, options.Partitions, maxPartitions)
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w: the URL cannot be used%s: write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, special characters of the password as %%XX",
			continuo.ErrInvalid, whyUnusable(text, err))
	}
	config.MaxConns = int32(options.MaxConns - options.Writers)
	config.PingTimeout = options.StatementTimeout
	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	if conn.ValidateConnect == nil && len(hostsOf(conn.Config)) > 1 { // a standby's data may be out of date
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	setUnlessThere(conn.RuntimeParams, "application_name", options.Name)
	config.AfterConnect = prepareConnection(conn.RuntimeParams, options, options.LockTimeout)
	return config, nil
}

// connectTimeout bounds the attempt to connect to one address, unless the URL says connect_timeout.
const connectTimeout = 5 * time.Second

// whyUnusable explains what is wrong with a URL. A URL so broken that its password cannot be located gets no
// explanation, since that may quote the password.
func whyUnusable(text string, err error) string {
	parsed, parseErr := url.Parse(text)
	var detail *pgconn.ParseConfigError
	if parseErr != nil || parsed.Host == "" || !errors.As(err, &detail) || detail.Unwrap() == nil {
		return ""
	}
	why := detail.Unwrap().Error()
	if password, ok := parsed.User.Password(); ok && password != "" && strings.Contains(why, password) {
		return ""
	}
	return " (" + why + ")"
}

func setUnlessThere(params map[string]string, name, value string) {
	if _, there := params[name]; !there {
		params[name] = value
	}
}

// locationOf names a database without user, password and parameters.
func locationOf(config pgconn.Config) string {
	return fmt.Sprintf("PostgreSQL database %s at %s", config.Database, strings.Join(hostsOf(config), ","))
}

// hostsOf lists the servers that a URL names.
func hostsOf(config pgconn.Config) []string {
	hosts := []string{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	for _, other := range config.Fallbacks {
		if host := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port))); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
