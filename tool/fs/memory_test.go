package fs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// grown runs what is given and returns by how many bytes it made the heap grow at its largest. What is
// freed meanwhile does not count.
func grown(run func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return int64(after.HeapSys) - int64(before.HeapSys)
}

// writeLarge writes 64 MiB: lines of 1 KiB with the end of line given, the last of which begins with "the end".
func (p *fixture) writeLarge(name string, lines int, lineEnd byte) {
	p.Helper()
	file, err := os.Create(filepath.Join(p.ProjectDir, name))
	if err != nil {
		p.Fatal(err)
	}
	line := append(bytes.Repeat([]byte("x"), 1023), lineEnd)
	for range lines - 1 {
		if _, err := file.Write(line); err != nil {
			p.Fatal(err)
		}
	}
	copy(line, "the end")
	if _, err := file.Write(line); err != nil {
		p.Fatal(err)
	}
	if err := file.Close(); err != nil {
		p.Fatal(err)
	}
}

// TestLargeFilesAreNotHeld reads and searches files of 64 MiB.
func TestLargeFilesAreNotHeld(t *testing.T) {
	p := newFixture(t, nil)
	const lines = 64 << 10
	p.writeLarge("large", lines, '\n')
	p.writeLarge("oneline", lines, ' ')
	for name, c := range map[string]struct {
		run  func() string
		want string
	}{
		"a range of bytes":     {func() string { return p.read(`{"path":"@project/large","from_byte":67107840}`).Content }, "the end"},
		"a range of lines":     {func() string { return p.read(fmt.Sprintf(`{"path":"@project/large","from_line":%d}`, lines)).Content }, "the end"},
		"the beginning":        {func() string { return p.read(path("@project/large")).Content }, "of 67108864 bytes are left"},
		"a search":             {func() string { return p.search(`{"pattern":"the end","path":"@project/large"}`).Content }, fmt.Sprintf("@project/large:%d: the end", lines)},
		"a search in one line": {func() string { return p.search(`{"pattern":"the end","path":"@project/oneline"}`).Content }, "the end"},
		"a line after the end": {func() string { return p.read(fmt.Sprintf(`{"path":"@project/large","from_line":%d}`, lines+2)).Content }, "after the end"},
	} {
		var got string
		const most = lines << 10 * 3 / 4 // what a held file exceeds; garbage that is not yet collected does not
		if size := grown(func() { got = c.run() }); size > most || !strings.Contains(got, c.want) {
			t.Errorf("%s made the heap grow by %d bytes, more than %d, or is not there: %.300s", name, size, most, got)
		}
	}
}

// TestLargeFoldersAreNotHeld lists and searches a folder with more files than a page of names; with
// CONTINUO_LONG=1 it is one of 100 000.
func TestLargeFoldersAreNotHeld(t *testing.T) {
	count := 10_000
	if os.Getenv("CONTINUO_LONG") != "" {
		count = 100_000
	}
	p := newFixture(t, nil)
	for i := range count {
		if err := os.WriteFile(filepath.Join(p.ProjectDir, fmt.Sprintf("file-%06d.txt", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.write(fmt.Sprintf("file-%06d.txt", count-1), "needle")
	walked := p.list(`{"path":"@project/","limit":1}`).Content
	if want := "file-000000.txt  0\n["; !strings.HasPrefix(walked, want) {
		t.Errorf("%s, want %s", walked, want)
	}
	if count == 10_000 && !strings.Contains(walked, "[9999 more;") {
		t.Errorf("the rest is counted wrong: %s", walked)
	}
	last := fmt.Sprintf(`{"path":"@project/","after":"file-%06d.txt"}`, count-2)
	p.is(p.list(last), fmt.Sprintf("file-%06d.txt  6", count-1))
	p.is(p.search(`{"pattern":"needle"}`), fmt.Sprintf("@project/file-%06d.txt:1: needle", count-1))
}
