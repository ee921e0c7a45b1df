// Package childtest is for tests of what starts programs: the test's own binary plays them, and tells the test over a
// connection that it runs. The connection breaks when the process is gone, whatever ended it, so that nothing has to
// be waited for by the clock.
package childtest

import (
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The variables that say which part a process plays, and where the test listens.
const (
	rolePlace    = "CHILDTEST_ROLE"
	witnessPlace = "CHILDTEST_WITNESS"
)

// Main runs the tests, or in a process that was started with a role, the role.
func Main(m *testing.M, roles map[string]func()) {
	name := os.Getenv(rolePlace)
	if name == "" {
		os.Exit(m.Run())
	}
	if role := roles[name]; role != nil {
		role()
		os.Exit(0)
	}
	panic("no role " + name)
}

// Env is the environment of a process that plays a role.
func Env(role string) []string { return []string{rolePlace + "=" + role} }

// Report connects to the test: that the process runs is known then. Its exit, or its being killed, breaks the
// connection.
func Report() net.Conn {
	conn, err := net.Dial("tcp", os.Getenv(witnessPlace))
	if err != nil {
		panic(err)
	}
	return conn
}

// Block reports and waits until the test breaks the connection, or the process is ended.
func Block() { _, _ = io.Copy(io.Discard, Report()) }

// limit is how long a test waits for what must come.
const limit = 30 * time.Second

// Witness hears of processes.
type Witness struct {
	t        *testing.T
	listener *net.TCPListener
}

// NewWitness listens.
func NewWitness(t *testing.T) *Witness {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &Witness{t, listener.(*net.TCPListener)}
}

// Env is the environment of a process that plays a role and reports.
func (w *Witness) Env(role string) []string {
	return append(Env(role), witnessPlace+"="+w.listener.Addr().String())
}

// Running waits until the next process has reported.
func (w *Witness) Running() net.Conn {
	w.t.Helper()
	_ = w.listener.SetDeadline(time.Now().Add(limit))
	conn, err := w.listener.Accept()
	if err != nil {
		w.t.Fatalf("no process reported: %v", err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Gone fails the test unless a process that reported is gone already, or is just going.
func (w *Witness) Gone(process net.Conn) {
	w.t.Helper()
	_ = process.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := process.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		w.t.Errorf("a process is still there: %v", err)
	}
}

// NoGoroutines fails the test when goroutines of the packages below model are left, besides the test's own.
func NoGoroutines(t *testing.T) {
	t.Helper()
	var left string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if left = goroutines(); left == "" {
			return
		}
	}
	t.Errorf("goroutines are left:\n%s", left)
}

// goroutines are those that the packages under test began.
func goroutines() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		inside := strings.Contains(stack, "/model/internal/child.") || strings.Contains(stack, "/model/acp.") || strings.Contains(stack, "/model/command.")
		if inside && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, ".Test") {
			return stack
		}
	}
	return ""
}
