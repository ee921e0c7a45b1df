// Package childtest is for tests of code that starts programs: the test's own binary plays the programs, and reports to
// the test over a connection that it runs. The connection breaks when the process ends for any reason, so that no test
// has to wait by the clock.
package childtest

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The variables with the role of a process, and the address on which the test listens.
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

// Start starts a process of the same binary with another role, which shares this one's stdout and stderr.
func Start(role string, attributes *syscall.SysProcAttr) {
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), Env(role)...)
	other.Stdout, other.Stderr, other.SysProcAttr = os.Stdout, os.Stderr, attributes
	if err := other.Start(); err != nil {
		panic(err)
	}
}

// Report connects to the test, which shows that the process runs. The connection breaks when the process exits or is
// killed.
func Report() net.Conn {
	conn, err := net.Dial("tcp", os.Getenv(witnessPlace))
	if err != nil {
		panic(err)
	}
	return conn
}

// Block reports and waits until the test breaks the connection, or the process is ended.
func Block() { _, _ = io.Copy(io.Discard, Report()) }

// limit is how long a test waits for an event that must come.
const limit = 5 * time.Minute

// Witness receives the reports of processes.
type Witness struct {
	t        *testing.T
	listener *net.TCPListener
}

// NewWitness listens for reports.
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

// Gone fails the test unless a process that reported has ended or is just ending.
func (w *Witness) Gone(process net.Conn) {
	w.t.Helper()
	_ = process.SetReadDeadline(time.Now().Add(limit))
	if _, err := process.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		w.t.Errorf("a process is still there: %v", err)
	}
}

// NoGoroutines fails the test if goroutines of package child are left, or of the packages named here by the end of
// their paths, except for the test's own.
func NoGoroutines(t *testing.T, packages ...string) {
	t.Helper()
	packages = append(packages, "internal/child")
	var left string
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); runtime.Gosched() {
		if left = goroutines(packages); left == "" {
			return
		}
	}
	t.Errorf("goroutines are left:\n%s", left)
}

// goroutines returns the stack of a goroutine that the packages started, "" if there is none.
func goroutines(packages []string) string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		inside := slices.ContainsFunc(packages, func(name string) bool { return strings.Contains(stack, "/"+name+".") })
		if inside && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, ".Test") {
			return stack
		}
	}
	return ""
}
