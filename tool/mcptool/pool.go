package mcptool

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Bounds of a pool: how many servers it is connected to, and how long one stays connected that nobody asks for. That is
// longer than a turn may take.
const (
	maxPooled  = 64
	pooledIdle = 30 * time.Minute
)

// ErrPoolFull says that a pool is connected to as many servers as it may be.
var ErrPoolFull = errors.New("too many MCP servers are connected; try again later")

// Pool has the MCP servers that requests name. A server stays connected for the next request with the same address and
// headers. It is safe for concurrent use.
type Pool struct {
	options Options // of each server, besides Name, URL and Headers
	mu      sync.Mutex
	closed  bool
	sources map[[sha256.Size]byte]*pooled
}

// pooled is a server of a pool. Its source is set when ready is closed, unless err is.
type pooled struct {
	ready  chan struct{}
	source *Source
	err    error
	used   time.Time
}

// pooledName is the name of each server of a pool, which is the prefix of its tools' names.
const pooledName = "mcp"

// NewPool makes a pool; each server has the options, besides its name, address and headers.
func NewPool(options Options) *Pool {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Pool{options: options, sources: map[[sha256.Size]byte]*pooled{}}
}

// Source returns the server of an address, which is connected with some headers; its tools are named mcp.TOOL. The error
// says why it did not start. The source is closed by the pool.
func (p *Pool) Source(ctx context.Context, address string, headers map[string]string) (*Source, error) {
	key := keyOf(address, headers)
	server, begun, err := p.enter(key)
	if err != nil {
		return nil, err
	}
	if begun {
		p.connect(key, server, address, headers)
	}
	select {
	case <-server.ready:
		return server.source, server.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// enter returns the server of a key; begun says that the caller has to connect it.
func (p *Pool) enter(key [sha256.Size]byte) (server *pooled, begun bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Now()
	if p.closed {
		return nil, false, errClosed
	}
	if server, ok := p.sources[key]; ok {
		server.used = now
		return server, false, nil
	}
	for other, idle := range p.sources {
		if idle.source != nil && now.Sub(idle.used) > pooledIdle {
			delete(p.sources, other)
			go func() { _ = idle.source.Close() }() // bounded by its own grace; nobody uses it any more
		}
	}
	if len(p.sources) >= maxPooled {
		return nil, false, ErrPoolFull
	}
	server = &pooled{ready: make(chan struct{}), used: now}
	p.sources[key] = server
	return server, true, nil
}

// connect connects a server. One that does not start leaves the pool, so that the next request tries again.
func (p *Pool) connect(key [sha256.Size]byte, server *pooled, address string, headers map[string]string) {
	options := p.options
	options.Name, options.URL, options.Headers = pooledName, address, headers
	source, err := Connect(context.Background(), options) // the start has a limit of its own, and others wait for it too
	if err == nil {
		if err = source.Err(); err != nil {
			_ = source.Close() // never fails
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		server.err = err
		delete(p.sources, key)
	case p.closed:
		server.err = errClosed
		_ = source.Close() // never fails
	default:
		server.source = source
	}
	close(server.ready)
}

// Close disconnects all servers. It is idempotent.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	sources := slices.Collect(maps.Values(p.sources))
	clear(p.sources)
	p.mu.Unlock()
	for _, server := range sources {
		<-server.ready
		if server.source != nil {
			_ = server.source.Close() // never fails
		}
	}
	return nil
}

// keyOf identifies an address with some headers, without keeping their values.
func keyOf(address string, headers map[string]string) (key [sha256.Size]byte) {
	sum := sha256.New()
	write := func(text string) { sum.Write(append([]byte(text), 0)) }
	write(address)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		write(name)
		write(headers[name])
	}
	sum.Sum(key[:0])
	return key
}
