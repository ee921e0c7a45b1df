package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// killChild names the database for the process that is to be killed.
const killChild = "CONTINUO_TEST_KILL_DATABASE"

func TestMain(m *testing.M) {
	if path := os.Getenv(killChild); path != "" {
		appendForever(path)
	}
	os.Exit(m.Run())
}

const (
	killConversations = 3
	killWriters       = 9
)

// appendForever is the process that is killed: it appends, alone and in batches, with keys, and says a
// line for each entry that was acknowledged, after it was.
func appendForever(path string) {
	fatal := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	store, err := Open(context.Background(), path, Options{})
	fatal(err)
	log := continuo.NewLog(store, killOptions(path))
	var writers sync.WaitGroup
	for w := range killWriters {
		key := fmt.Sprint("c", w%killConversations)
		c, err := log.Find(context.Background(), continuo.Scope{ProjectID: continuo.DefaultProject}, key)
		if err != nil {
			c, err = log.Create(context.Background(), continuo.Conversation{Key: key})
			fatal(err)
		}
		writers.Go(func() {
			for i := 0; ; i++ {
				var batch []continuo.Entry
				for part := range 1 + i%3 {
					batch = append(batch, continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("%d/%d/%d", w, i, part))})
				}
				if i%4 == 3 {
					batch = append(batch, largeResult(fmt.Sprintf("%d/%d", w, i))...)
				}
				stored, err := log.Append(context.Background(), c.ID, batch, continuo.AppendOptions{Key: fmt.Sprint(os.Getpid(), "/", w, "/", i)})
				fatal(err)
				line := ""
				for _, e := range stored {
					line += fmt.Sprintln(key, e.Seq, e.ID)
				}
				_, err = os.Stdout.WriteString(line)
				fatal(err)
			}
		})
	}
	writers.Wait()
}

// killOptions keep large outputs in a folder beside the database.
func killOptions(path string) continuo.LogOptions {
	return continuo.LogOptions{MaxInlineOutput: 1000, Objects: killObjects{folder: path + "-objects"}}
}

// killObjects are files; what the log uses of an object store while nothing is refused.
type killObjects struct {
	continuo.ObjectStore
	folder string
}

func (o killObjects) PutObject(_ context.Context, name string, data io.Reader) error {
	path := filepath.Join(o.folder, filepath.FromSlash(name))
	read, err := io.ReadAll(data)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, read, 0o600)
	}
	return err
}

func (o killObjects) ReadObject(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	data, err := os.ReadFile(filepath.Join(o.folder, filepath.FromSlash(name)))
	if err != nil || offset+length > int64(len(data)) {
		return nil, fmt.Errorf("object %s: %d bytes from %d: %w", name, length, offset, err)
	}
	return io.NopCloser(bytes.NewReader(data[offset : offset+length])), nil
}

// largeResult is a call with an output that is an object.
func largeResult(id string) []continuo.Entry {
	return []continuo.Entry{
		{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall(id, "f", "{}")}},
		{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text(strings.Repeat(id+"\n", 800))},
	}
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	kills := 15
	if os.Getenv("CONTINUO_LONG") != "" {
		kills = 200
	}
	path := filepath.Join(t.TempDir(), "a.db")
	acknowledged := map[string]string{} // "key seq" to the entry's id
	random := rand.New(rand.NewPCG(1, 2))
	for kill := range kills {
		runAndKill(t, path, random.IntN(150), acknowledged)
		checkSurvivors(t, path, acknowledged)
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	t.Logf("%d kills, %d entries acknowledged, all there", kills, len(acknowledged))
}

// runAndKill lets the child acknowledge some entries, kills it in the middle of its work, and takes note
// of all that it has said until then.
func runAndKill(t *testing.T, path string, after int, acknowledged map[string]string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), killChild+"="+path)
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
		var key, seq, id string
		if n, _ := fmt.Sscan(scanner.Text(), &key, &seq, &id); n != 3 || len(id) != len("ent_")+32 {
			break // the last line, torn by the kill
		}
		acknowledged[key+" "+seq] = id
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

func checkSurvivors(t *testing.T, path string, acknowledged map[string]string) {
	t.Helper()
	store := openAt(t, path, Options{})
	log := continuo.NewLog(store, killOptions(path))
	there := map[string]string{}
	for i := range killConversations {
		key := fmt.Sprint("c", i)
		c, err := log.Find(t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, key)
		if err != nil {
			continue // the kill may have come first; what is missing shows below
		}
		last := int64(0)
		for e, err := range log.Read(t.Context(), c, continuo.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			last++
			if whole, err := log.WholeContent(t.Context(), &e); e.Role == continuo.Tool && (err != nil || e.Output == nil || whole.String() != strings.Repeat(e.ToolCallID+"\n", 800)) {
				t.Errorf("the output of %s %d: %+v (%v)", key, e.Seq, e.Output, err)
			}
			if e.Seq != last {
				t.Fatalf("conversation %s has seq %d at place %d", key, e.Seq, last)
			}
			there[fmt.Sprint(key, " ", e.Seq)] = e.ID
		}
		if c.LastSeq != last {
			t.Errorf("conversation %s has LastSeq %d and %d entries", key, c.LastSeq, last)
		}
	}
	for place, id := range acknowledged {
		if there[place] != id {
			t.Errorf("entry %s was acknowledged at %s, there is %q", id, place, there[place])
		}
	}
	var verdict string
	if err := store.read(t.Context(), func(conn *connection) error { return conn.row(`PRAGMA quick_check`, nil, &verdict) }); err != nil || verdict != "ok" {
		t.Errorf("quick_check: %s, %v", verdict, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
