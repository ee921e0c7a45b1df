package mcptool

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/continuo-log/continuo/tool"
)

func TestASilentServerIsGivenUp(t *testing.T) {
	options := childOptions(t, "silent")
	options.StartTimeout = 50 * time.Millisecond
	options.RestartWait = time.Hour
	source := connect(t, options)
	if err := source.Err(); err == nil || !strings.Contains(err.Error(), "did not answer within 50ms") {
		t.Errorf("the error is %v", err)
	}
}

// A server that does not read fills the pipe; the write of the call must not outlive its time limit.
func TestAServerThatDoesNotRead(t *testing.T) {
	options := childOptions(t, "deaf")
	options.CallTimeout = 50 * time.Millisecond
	source := connect(t, options)
	large := `{"text":"` + strings.Repeat("a", 1<<20) + `"}`
	wantResult(t, run(t, find(t, source, "go"), large), true, "no answer within 50ms")
}

func TestAMessageWithoutEnd(t *testing.T) {
	options := childOptions(t, "endless")
	options.MaxMessageBytes = 8 << 20
	source := connect(t, options)
	peak := heapPeak(t, func() {
		wantResult(t, call(t, source, "go", ""), true, "more than 8388608 bytes", "may or may not have been carried out")
	})
	if peak > 64<<20 {
		t.Errorf("the heap grew by %d MiB", peak>>20)
	}
}

func TestAListWithoutEnd(t *testing.T) {
	options := childOptions(t, "pages")
	log := newJournal()
	options.Logger = log.logger()
	source := connect(t, options)
	tools := source.Tools(t.Context())
	if len(tools) != maxTools {
		t.Errorf("%d tools", len(tools))
	}
	log.await(t, "too many pages")
	for _, spec := range tools.Specs() {
		if len(spec.Description) > maxDescription || !utf8.ValidString(spec.Description) || !strings.HasSuffix(spec.Description, " … (cut)") {
			t.Fatalf("a description of %d bytes: …%q", len(spec.Description), spec.Description[len(spec.Description)-20:])
		}
	}
}

func TestNoiseAndAbsurdTools(t *testing.T) {
	options := childOptions(t, "noise")
	log := newJournal()
	options.Logger = log.logger()
	source := connect(t, options)
	if got := strings.Join(names(source.Tools(t.Context())), " "); got != "srv.a.b srv.free srv.long" {
		t.Errorf("the tools are %s", got)
	}
	if spec := find(t, source, "free").Spec(); string(spec.Parameters) != `{"type":"object","properties":{}}` {
		t.Errorf("no schema is %s", spec.Parameters)
	}
	for _, reason := range []string{"no name", "cannot be seen", "129 bytes", "is no object", "something else than an object: string", "another tool has the same name", "65536", "no messages"} {
		log.await(t, reason)
	}
	wantResult(t, call(t, source, "free", ""), true, "refused the call: no tools/call here (code -32601)")
}

func TestAServerThatAsksWithoutReading(t *testing.T) {
	options := childOptions(t, "asking")
	options.RestartWait = time.Hour
	log := newJournal()
	options.Logger = log.logger()
	connect(t, options)
	log.await(t, "requests without reading the answers")
}

func TestAnOldServerThatDiesOfTheNewHandshake(t *testing.T) {
	options := childOptions(t, "old")
	log := newJournal()
	options.Logger = log.logger()
	source := connect(t, options)
	log.await(t, "is up")
	find(t, source, "go")
}

func TestAFloodOfStderr(t *testing.T) {
	options := childOptions(t, "flood")
	log := newJournal()
	options.Logger = log.logger()
	source := connect(t, options)
	wantResult(t, call(t, source, "echo", "dry"), false, "dry")
	_ = source.Close()
	if size := len(log.text()); size > 5<<20 || !strings.Contains(log.text(), "eeee") {
		t.Errorf("%d bytes were logged of 200 MB", size)
	}
}

func TestStderrIsBounded(t *testing.T) {
	log := newJournal()
	now := time.Unix(100, 0)
	lines := stderrLog{logger: log.logger(), now: func() time.Time { return now }}
	for range 3 * maxStderrLines {
		lines.pass([]byte("said \xff"))
	}
	now = now.Add(time.Second)
	lines.pass([]byte("later"))
	text := log.text()
	if strings.Count(text, "said") != maxStderrLines || !strings.Contains(text, "lines=100") || !strings.Contains(text, "later") || !utf8.ValidString(text) {
		t.Errorf("%d lines were logged:\n%.500s", strings.Count(text, "\n"), text)
	}
}

// A text that fits arrives whole, and the heap's peak is a small multiple of it; one byte less room ends
// the session.
func TestALargeResult(t *testing.T) {
	options := childOptions(t, "sdk")
	options.MaxMessageBytes = largeResult
	source := connect(t, options)
	wantResult(t, call(t, source, "big", strconv.Itoa(largeResult)), true, fmt.Sprintf("more than %d bytes", largeResult))
	wantResult(t, call(t, source, "echo", "up again"), false, "up again")
	_ = source.Close()

	options.MaxMessageBytes = largeResult * 5 / 4
	source = connect(t, options)
	var result tool.Result
	peak := heapPeak(t, func() { result = call(t, source, "big", strconv.Itoa(largeResult)) })
	if len(result.Content) != largeResult || result.Failed {
		t.Errorf("%d bytes, failed %v: %.200s", len(result.Content), result.Failed, result.Content)
	}
	t.Logf("a text of %d MiB took %d MiB of heap at its peak", largeResult>>20, peak>>20)
	if peak > 16*largeResult {
		t.Errorf("a text of %d MiB took %d MiB of heap", largeResult>>20, peak>>20)
	}
}

// heapPeak measures by how much the heap grows while run works.
func heapPeak(t *testing.T, run func()) uint64 {
	t.Helper()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(t.Context())
	var peak atomic.Uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTicker(2 * time.Millisecond)
		defer look.Stop()
		for ctx.Err() == nil {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak.Store(max(peak.Load(), now.HeapInuse))
			<-look.C
		}
	}()
	run()
	cancel()
	<-done
	return max(peak.Load(), before.HeapInuse) - before.HeapInuse
}
