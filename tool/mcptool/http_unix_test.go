//go:build unix

package mcptool

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// port is a TCP port of the test's own until its end: no other program gets it, and connections to it are refused while
// nothing listens.
type port string

func newPort(t *testing.T) port {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	unix.CloseOnExec(socket)
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return port(fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port))
}

// serve starts a server at the port.
func (p port) serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	shares := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) (err error) {
		failed := conn.Control(func(socket uintptr) {
			err = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		if failed != nil {
			return failed
		}
		return err
	}}
	listener, err := shares.Listen(context.Background(), "tcp4", string(p))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	return server
}

func TestAnHTTPServerThatIsGoneForAWhile(t *testing.T) {
	at := newPort(t)
	server := at.serve(t, sdkHandler(true))
	options := (&host{Server: server}).options()
	options.CallWait = 20 * time.Millisecond
	source := connect(t, options)
	echo := find(t, source, "echo")
	_ = server.Listener.Close() // first, so that nobody connects again
	server.CloseClientConnections()
	server.Close()
	result := run(t, echo, `{"text":"x"}`)
	for strings.Contains(result.Content, "may or may not") {
		result = run(t, echo, `{"text":"x"}`) // the one before was sent on a connection that was about to break
	}
	wantResult(t, result, true, "nothing was done", "connection refused")
	if _, ok := source.Tools(t.Context()).Find("srv.echo"); !ok {
		t.Error("the tools went with the server")
	}
	again := at.serve(t, sdkHandler(true))
	defer again.Close()
	defer source.Close()
	limit := time.Now().Add(patience)
	for result = run(t, echo, `{"text":"back"}`); result.Content != "back"; result = run(t, echo, `{"text":"back"}`) {
		if time.Now().After(limit) {
			t.Fatalf("it did not come back: %s", result.Content)
		}
	}
}
