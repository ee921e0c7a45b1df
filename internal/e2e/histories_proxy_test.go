package e2e

import (
	"net"
	"sync"
	"testing"
	"time"
)

// lineFault is what a proxy does to connections.
type lineFault string

const (
	healthy     lineFault = ""
	slow        lineFault = "slow"         // everything is late
	partitioned lineFault = "partitioned"  // connections break, and new ones too
	halfOpen    lineFault = "half-open"    // nothing is passed on, and nothing breaks
	answersHeld lineFault = "answers held" // requests arrive, answers do not
)

// lateBy is how late a piece is on a slow connection.
const lateBy = 20 * time.Millisecond

// databaseProxy passes bytes between a replica and the database, and has faults.
type databaseProxy struct {
	listener net.Listener
	target   string

	mu          sync.Mutex
	fault       lineFault
	changed     chan struct{} // closed when the fault changes
	connections map[net.Conn]bool
}

// proxyTo starts a proxy that ends with the test.
func proxyTo(t *testing.T, target string) *databaseProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed with the test
	if err != nil {
		t.Fatal(err)
	}
	p := &databaseProxy{listener: listener, target: target, changed: make(chan struct{}), connections: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.set(partitioned)
		serving.Wait()
	})
	return p
}

// address is where the proxy listens.
func (p *databaseProxy) address() string { return p.listener.Addr().String() }

// set changes the fault. A partition breaks all connections.
func (p *databaseProxy) set(next lineFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = next
	close(p.changed)
	p.changed = make(chan struct{})
	if next == partitioned {
		for connection := range p.connections {
			_ = connection.Close()
		}
	}
}

// keep adds a connection, or refuses it during a partition.
func (p *databaseProxy) keep(connection net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != partitioned {
		p.connections[connection] = true
	}
	return p.fault != partitioned
}

func (p *databaseProxy) serve(client net.Conn) {
	defer p.drop(client)
	server, err := net.Dial("tcp", p.target) //nolint:noctx // ends at once
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.keep(client) || !p.keep(server) {
		return
	}
	var answering sync.WaitGroup
	answering.Go(func() { p.pass(client, server, true) })
	p.pass(server, client, false)
	answering.Wait()
}

func (p *databaseProxy) drop(connection net.Conn) {
	_ = connection.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, connection)
}

// pass copies bytes in one direction until a side is gone.
func (p *databaseProxy) pass(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.wait(answers)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// wait returns when a piece may be passed on.
func (p *databaseProxy) wait(answers bool) {
	for {
		p.mu.Lock()
		now, changed := p.fault, p.changed
		p.mu.Unlock()
		switch {
		case now == slow:
			<-time.After(lateBy)
			return
		case now != halfOpen && (now != answersHeld || !answers):
			return
		}
		<-changed
	}
}
