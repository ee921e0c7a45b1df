package pgtest

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestAServerHasTheSettingsThatItWasStartedWith(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options Options
		want    map[string]string
	}{
		"careless": {Options{}, map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "listen_addresses": ""}},
		"durable":  {Options{Durable: true}, map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}},
		"of tests": {
			Options{ListenTCP: true, Settings: map[string]string{"work_mem": "7MB", "search_path": "it's, public", "TimeZone": "UTC"}},
			map[string]string{"work_mem": "7MB", "search_path": "it's, public", "listen_addresses": "127.0.0.1", "server_encoding": "UTF8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := Start(t, test.options)
			for setting, want := range test.want {
				expect(t, server.URL("postgres"), want, "SELECT current_setting($1)", setting)
			}
			expect(t, server.URL("postgres"), "äö", "SELECT lower('ÄÖ')")
		})
	}
}

func TestAServerThatCannotStartReportsWhy(t *testing.T) {
	t.Parallel()
	_, err := start(Options{Settings: map[string]string{"no_such_setting": "1"}})
	if errors.Is(err, errAbsent) {
		check(t, err)
	}
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("the error does not name the setting: %v", err)
	}
}

func TestAKilledServerRestartsWithCommittedData(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{Durable: true})
	url := server.Database(t)
	writer := connect(t, url)
	if _, err := writer.Exec(t.Context(), "CREATE TABLE kept (n int)"); err != nil {
		t.Fatal(err)
	}
	const rows = 50
	for n := range rows {
		if _, err := writer.Exec(t.Context(), "INSERT INTO kept VALUES ($1)", n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Exec(t.Context(), "BEGIN; INSERT INTO kept SELECT generate_series(1, 1000)"); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	if err := writer.Ping(t.Context()); err == nil {
		t.Error("the server is killed, and a connection to it still works")
	}
	server.Restart(t)
	expect(t, url, rows, "SELECT count(*) FROM kept")
}

func TestAServerRestartsAfterEveryKindOfEnd(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{ListenTCP: true})
	url := server.Database(t)
	execute(t, url, "CREATE TABLE there ()")
	for name, end := range map[string]func(){
		"fast":      func() { server.Stop(t, Fast); server.Stop(t, Fast) },
		"immediate": func() { execute(t, url, "CHECKPOINT"); server.Stop(t, Immediate) },
		"killed":    func() { execute(t, url, "CHECKPOINT"); server.Kill(t) },
		"running":   func() {},
	} {
		end()
		server.Restart(t)
		if query[bool](t, url, "SELECT to_regclass('there') IS NULL") {
			t.Errorf("the table is gone after a restart: %s", name)
		}
	}
}

// A server that is down keeps its port from other servers of the machine.
func TestAPortBelongsToOneCluster(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{ListenTCP: true})
	server.Stop(t, Immediate)
	if !isClaimed(server.port, t.TempDir()) {
		t.Errorf("another server may take the port %d", server.port)
	}
	server.Restart(t)
}

func TestNothingStaysOfAServer(t *testing.T) {
	t.Parallel()
	var folder, memory string
	var pid int
	t.Run("killed", func(t *testing.T) {
		server := Start(t, Options{})
		folder, memory = server.folder, sharedMemoryOf(t, server)
		server.Kill(t)
	})
	t.Run("running", func(t *testing.T) {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder of the killed server is still there: %v", err)
		}
		if slices.Contains(segments(), memory) {
			t.Errorf("the shared memory %s of the killed server is still there", memory)
		}
		server := Start(t, Options{})
		folder, pid = server.folder, server.process.process.Pid
	})
	if pid == 0 {
		t.SkipNow()
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := signalTo(pid, 0); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the process is still there: %v", err)
	}
}

// sharedMemoryOf returns the id of the segment that a server uses, as its lock file tells.
func sharedMemoryOf(t *testing.T, server *Server) string {
	t.Helper()
	const line = 6 // the key and the id
	text, err := os.ReadFile(server.path(dataName + "/postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.Split(string(text), "\n")[line])[1]
}

// segments returns the ids of all shared memory, where the kernel tells.
func segments() (ids []string) {
	text, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range strings.Lines(string(text)) {
		ids = append(ids, strings.Fields(line)[1])
	}
	return ids
}

// childEnv tells this test binary that it is the child of one of its tests.
const childEnv = "CONTINUO_PGTEST_CHILD"

func TestAKilledTestBinaryTakesItsServersAlong(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux ends the children of a process that was killed")
	}
	if os.Getenv(childEnv) != "" {
		beKilled(t)
	}
	if _, err := findPrograms(); err != nil {
		check(t, err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childEnv+"=1")
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	folder, pid := readServer(t, bufio.NewScanner(output))
	_ = child.Process.Kill()
	_ = child.Wait()
	err = await(startTimeout, "the server of the killed test binary has ended", func(context.Context) (bool, error) {
		return errors.Is(signalTo(pid, 0), os.ErrProcessDone), nil
	})
	if err != nil {
		t.Error(err)
		_ = signalTo(pid, syscall.SIGQUIT)
	}
	removeLeftovers()
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the killed test binary is still there: %v", err)
	}
}

// beKilled starts a server, says which, and waits for its end.
func beKilled(t *testing.T) {
	server := Start(t, Options{})
	_, _ = os.Stdout.WriteString("server " + server.folder + " " + strconv.Itoa(server.process.process.Pid) + "\n")
	<-t.Context().Done()
}

func readServer(t *testing.T, lines *bufio.Scanner) (folder string, pid int) {
	t.Helper()
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[0] != "server" {
			continue
		}
		pid, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		return fields[1], pid
	}
	t.Fatalf("the child did not say where its server is: %v", lines.Err())
	return "", 0
}

// signalTo sends a signal, or with 0 asks whether a process is there.
func signalTo(pid int, signal syscall.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // nothing to lose
	return process.Signal(signal)
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		server, err := start(Options{})
		check(b, err)
		b.StopTimer()
		if err := server.end(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkRestart(b *testing.B) {
	server := Start(b, Options{})
	b.ResetTimer()
	for b.Loop() {
		server.Restart(b)
	}
}
