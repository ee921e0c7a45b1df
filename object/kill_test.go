package object

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// killChild names the folder for the process that is to be killed.
const killChild = "CONTINUO_TEST_KILL_FOLDER"

const killWriters = 6

// putForever is the process that is killed. Each of its writers puts objects of its own, replaces one again
// and again, and deletes some, and says a line for what was acknowledged, after it was.
func putForever(folder string) {
	fatal := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	b, err := Open(ctx, folder, Options{})
	fatal(err)
	var writers sync.WaitGroup
	for w := range killWriters {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(w)))
			for i := 1; ; i++ {
				name := fmt.Sprintf("conv_%d/%d_%d", i%5, os.Getpid(), w*1_000_000+i)
				if i%3 == 0 {
					name = fmt.Sprintf("replaced/%d", w)
				}
				fatal(b.PutObject(ctx, name, killData(name, random.IntN(3)*random.IntN(200_000))))
				line := fmt.Sprintln("put", name, ".")
				if i%5 == 0 {
					fmt.Print(line)
					fmt.Print(fmt.Sprintln("deleting", name, "."))
					fatal(b.DeleteObject(ctx, name))
					line = fmt.Sprintln("deleted", name, ".")
				}
				fmt.Print(line)
			}
		})
	}
	writers.Wait()
}

// killData is an object that tells whether it is whole: its name and size, a body, and its name again.
func killData(name string, size int) io.Reader {
	return io.MultiReader(strings.NewReader(fmt.Sprintln(name, size)), bytes.NewReader(bytes.Repeat([]byte("x"), size)), strings.NewReader(name))
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	kills := 10
	if os.Getenv("CONTINUO_LONG") != "" {
		kills = 200
	}
	folder := t.TempDir()
	acknowledged := map[string]string{} // by name: put, deleting, or deleted
	random := rand.New(rand.NewPCG(1, 2))
	for kill := range kills {
		runAndKill(t, folder, random.IntN(200), acknowledged)
		checkSurvivors(t, folder, acknowledged)
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	t.Logf("%d kills, %d objects acknowledged, all there", kills, len(acknowledged))
}

// runAndKill lets the child acknowledge some objects, kills it in the middle of its work, and takes note
// of all that it has said until then.
func runAndKill(t *testing.T, folder string, after int, acknowledged map[string]string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), killChild+"="+folder)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for scanner := bufio.NewScanner(out); scanner.Scan(); lines++ {
		var what, name, end string
		if n, _ := fmt.Sscan(scanner.Text(), &what, &name, &end); n != 3 || end != "." {
			break // the last line, torn by the kill
		}
		acknowledged[name] = what
		if lines == after {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	if lines <= after {
		t.Fatalf("the child ended by itself after %d lines", lines)
	}
}

// checkSurvivors reads every object: all that was acknowledged is there, and what is there is whole.
func checkSurvivors(t *testing.T, folder string, acknowledged map[string]string) {
	t.Helper()
	b := openAt(t, folder)
	there := map[string]bool{}
	for info, err := range b.Objects(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		there[info.Name] = true
		body, err := b.ReadObject(t.Context(), info.Name, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(body)
		if err != nil || body.Close() != nil {
			t.Fatal(err)
		}
		var name string
		var size int
		if n, _ := fmt.Sscan(string(data), &name, &size); n != 2 || name != info.Name || info.Size != int64(len(data)) {
			t.Errorf("%s begins with other text: %.60q", info.Name, data)
		} else if want, _ := io.ReadAll(killData(name, size)); !bytes.Equal(data, want) {
			t.Errorf("%s is not whole: %d bytes of %d", name, len(data), len(want))
		}
	}
	for name, what := range acknowledged {
		replaced := strings.HasPrefix(name, "replaced/") // may have been put or deleted again
		if what == "put" && !there[name] && !replaced || what == "deleted" && there[name] && !replaced {
			t.Errorf("%s was %s, and is there: %t", name, what, there[name])
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
