package fs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
)

func TestListShowsAFolder(t *testing.T) {
	p := newFixture(t, map[string]string{"b.go": "12345", "a/x": "1", "a/y/z": "22", "a.go": "", ".hidden": "1", ".git/config": "secret", "a/.git": "gitdir: x"})
	p.link("b.go", "c")
	p.is(p.list(path("@project/")), ".hidden  1\na/\na.go  0\nb.go  5\nc  (link)")
	p.is(p.list(path("@project")), ".hidden  1\na/\na.go  0\nb.go  5\nc  (link)")
	p.is(p.list(path("@project/a")), "x  1\ny/")
	p.is(p.list(`{"path":"@project/a/","depth":2}`), "x  1\ny/\ny/z  2")
	p.is(p.list(path("@project/b.go")), "b.go  5")
	p.fails(p.list(path("@project/z")), "no such file")
	p.write("a/y/empty/x", "")
	p.is(p.list(path("@project/a/y/empty")), "x  0")
	p.is(newFixture(t, nil).list(path("@project/")), "[nothing is here]")
}

// TestListContinues reads a tree in steps of every length and wants the same names as at once.
func TestListContinues(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("d%d/f%d", i%4, i)], files[fmt.Sprintf("d%d/e/f%d", i%3, i)], files[fmt.Sprintf("d%d.x", i%5)] = "", "", ""
	}
	p := newFixture(t, files)
	whole := p.list(`{"path":"@project/","depth":9}`).Content
	for limit := 1; limit < 20; limit++ {
		if got := p.steps("@project/", limit); got != whole {
			t.Fatalf("limit %d:\n%s\nwant:\n%s", limit, got, whole)
		}
	}
}

// steps lists a folder, so many lines at a time, by doing what the last line says.
func (p *fixture) steps(folder string, limit int) string {
	p.Helper()
	var got []string
	left := 0
	for after := ""; ; {
		result := p.list(fmt.Sprintf(`{"path":%q,"depth":9,"limit":%d,"after":%q}`, folder, limit, after))
		shown, note, more := strings.Cut(result.Content, "[")
		names := strings.Split(strings.TrimSpace(shown), "\n")
		got = append(got, names...)
		if left > 0 && len(names) != min(left, limit) {
			p.Fatalf("limit %d: %d lines when %d were left", limit, len(names), left)
		}
		if !more {
			return strings.Join(got, "\n")
		}
		if _, err := fmt.Sscanf(note, "%d more; continue with after %q", &left, &after); err != nil {
			p.Fatalf("limit %d: %q: %v", limit, note, err)
		}
	}
}

func TestListIsCutAtWholeLines(t *testing.T) {
	p := newFixture(t, map[string]string{"aaaa": "", "bbbb": "", "cccc": ""})
	p.is(p.run(fs.List{Roots: p.Roots, MaxBytes: 17}, path("@project/")), "aaaa  0\nbbbb  0\n[1 more; continue with after \"bbbb\", or use path to list a folder below]")
}

func TestListStopsWhenTheTimeIsUp(t *testing.T) {
	p := newFixture(t, map[string]string{"a/x": "", "b/x": ""})
	ctx := &countdown{Context: t.Context(), left: 2}
	result := fs.List{Roots: p.Roots}.Run(ctx, tool.Call{Arguments: `{"path":"@project/","depth":3}`})
	p.is(result, "a/\n[the time is up and there may be more; continue with after \"a\"]")
}

// countdown is a context that ends when it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func (c *countdown) Done() <-chan struct{} { return nil }
