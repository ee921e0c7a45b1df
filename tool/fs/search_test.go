package fs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
)

func TestSearchShowsWholeMatches(t *testing.T) {
	p := newFixture(t, map[string]string{
		"b.go": "package b\n\nfunc Main() {}\r\n// func main\n", "a/a.go": "func main() {}", "a/a.md": "func main\n", "a.bin": "func main\x00", ".git/x": "func main",
	})
	p.is(p.search(`{"pattern":"func main"}`), "@project/a/a.go:1: func main() {}\n@project/a/a.md:1: func main\n@project/b.go:4: // func main")
	p.is(p.search(`{"pattern":"^func [mM]ain\\(","include":"*.go"}`), "@project/a/a.go:1: func main() {}\n@project/b.go:3: func Main() {}")
	p.is(p.search(`{"pattern":"MAIN()","literal":true,"ignore_case":true,"path":"@project/b.go"}`), "@project/b.go:3: func Main() {}")
	p.is(p.search(`{"pattern":"{}$","path":"@project/a"}`), "@project/a/a.go:1: func main() {}")
	p.is(p.search(`{"pattern":"()","literal":true,"include":"a/*"}`), "@project/a/a.go:1: func main() {}")
	p.is(p.search(`{"pattern":"nowhere"}`), "[nothing matches in 3 files]\n[1 binary files were passed over]")
	p.is(p.search(`{"pattern":"x","path":"@project/a","include":"*.rs"}`), "[nothing matches in 0 files]")
	p.fails(p.search(`{"pattern":"x","path":"@project/c"}`), "no such file")
}

func TestSearchContinues(t *testing.T) {
	p := newFixture(t, map[string]string{"a": "x1\nx2\n", "b": "x3\nno\nx4\nx5"})
	p.is(p.search(`{"pattern":"x","max_matches":2}`), "@project/a:1: x1\n@project/a:2: x2\n[3 of 5 matching lines in 2 files are left out; narrow path, include or pattern, or continue with skip 2]")
	p.is(p.search(`{"pattern":"x","max_matches":2,"skip":2}`), "@project/b:1: x3\n@project/b:3: x4\n[1 of 5 matching lines in 2 files are left out; narrow path, include or pattern, or continue with skip 4]")
	p.is(p.search(`{"pattern":"x","skip":4}`), "@project/b:4: x5")
	p.is(p.search(`{"pattern":"x","skip":5}`), "[no more: 5 matching lines in 2 files, all before skip 5]")
	p.is(p.run(fs.Search{Roots: p.Roots, MaxBytes: 40}, `{"pattern":"x"}`), "@project/a:1: x1\n@project/a:2: x2\n[3 of 5 matching lines in 2 files are left out; narrow path, include or pattern, or continue with skip 2]")
}

func TestSearchMatchesAcrossPiecesOfALongLine(t *testing.T) {
	const piece = 128 << 10
	for _, before := range []int{0, 1, piece - 6, piece - 5, piece - 3, piece - 1, piece, 2*piece - 3, 3 * piece} {
		p := newFixture(t, map[string]string{"long": "first\n" + strings.Repeat("x", before) + "NEEDLE" + strings.Repeat("y", 2*piece) + "\nNEEDLE"})
		got := p.search(`{"pattern":"NEEDLE"}`)
		lines := strings.Split(got.Content, "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "@project/long:2: ") || !strings.Contains(lines[0], "NEEDLE") || len(lines[0]) > 430 || lines[1] != "@project/long:3: NEEDLE" {
			t.Errorf("%d bytes before: %.500s", before, got.Content)
		}
	}
}

func TestSearchWithoutTimeReportsIt(t *testing.T) {
	p := newFixture(t, map[string]string{"a": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.is(fs.Search{Roots: p.Roots}.Run(ctx, tool.Call{Arguments: `{"pattern":"x"}`}), "[the time is up: no file was searched whole, so narrow path or include]")
}
