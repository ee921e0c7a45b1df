package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool/fs"
)

func TestReadGivesRanges(t *testing.T) {
	p := newFixture(t, map[string]string{"a.txt": "one\ntwo\nthree\nżółć", "empty": ""})
	for arguments, want := range map[string]string{
		``:                           "one\ntwo\nthree\nżółć",
		`,"from_line":4`:             "żółć",
		`,"from_line":2,"to_line":3`: "two\nthree\n[8 of 22 bytes are left; continue with from_line 4]",
		`,"to_line":1`:               "one\n[18 of 22 bytes are left; continue with from_line 2]",
		`,"to_line":99`:              "one\ntwo\nthree\nżółć",
		`,"from_byte":4,"length":3`:  "two\n[15 of 22 bytes are left; continue with from_byte 7]",
		`,"from_byte":15`:            "ółć", // byte 15 ends ż
		`,"from_byte":14,"length":3`: "ż\n[6 of 22 bytes are left; continue with from_byte 16]",
		`,"from_byte":22`:            "",
	} {
		p.is(p.read(`{"path":"@project/a.txt"`+arguments+`}`), want)
	}
	p.is(p.read(path("@project/empty")), "")
	p.fails(p.read(`{"path":"@project/a.txt","from_line":6}`), "from_line 6 is after the end", "3 line ends")
	p.fails(p.read(`{"path":"@project/a.txt","from_byte":23}`), "the file has 22 bytes")
	p.fails(p.read(`{"path":"@project/a.txt","from_byte":1,"to_line":2}`), "not both")
	p.fails(p.read(`{"path":"@project/a.txt","from_line":3,"to_line":2}`), "to_line 2 is before from_line 3")
	p.fails(p.read(`{"path":"@project/a.txt","from_line":-1}`), "none is negative")
}

func TestWholeFileCanBeReadInSteps(t *testing.T) {
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "func f%d() {\n\tżółć(%d)\n}\n\n", i, i)
	}
	p := newFixture(t, map[string]string{"a.go": text.String()})
	reader := fs.Read{Roots: p.Roots, MaxBytes: 1000}
	var got strings.Builder
	for line, steps := 1, 0; ; steps++ {
		result := p.run(reader, fmt.Sprintf(`{"path":"@project/a.go","from_line":%d}`, line))
		shown, note, more := strings.Cut(result.Content, "[")
		got.WriteString(shown)
		if !more {
			break
		}
		if !strings.HasSuffix(shown, "}\n") || len(shown) > 1000 || steps > 100 {
			t.Fatalf("step %d of %d bytes ends with %q", steps, len(shown), shown[max(0, len(shown)-20):])
		}
		if _, err := fmt.Sscanf(note[strings.Index(note, "from_line"):], "from_line %d]", &line); err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != text.String() {
		t.Error("the steps together are not the file")
	}
}

func TestReadRefusesWhatCannotBeShown(t *testing.T) {
	p := newFixture(t, map[string]string{"dir/notes.md": "x", "a.bin": "ab\x00cd", "latin.txt": "caf\xe9"})
	p.is(p.read(path("@project/latin.txt")), "caf\uFFFD")
	p.fails(p.read(path("@project/a.bin")), "binary file of 5 bytes")
	p.fails(p.read(path("@project/dir")), "this is a folder; fs.list")
	p.fails(p.read(path("@project/dir/")), "this is a folder")
	p.fails(p.read(path("@project/dir/note.md")), "no such file", "did you mean @project/dir/notes.md?")
	if _, err := os.Stat(filepath.Join(p.ProjectDir, "DIR")); err != nil { // where the system tells them apart
		p.fails(p.read(path("@project/DIR/notes.md")), "no such file")
		p.fails(p.read(path("@project/dir/Notes.md")), "no such file", "small and capital letters differ")
	}
	p.fails(p.read(path("@project/dir/zzzzzzzz")), "fs.list with path @project/dir/")
	p.fails(p.read(path("@project/gone/x")), "no such file", "not the folder @project/gone/")
	p.fails(p.read(path("@project/dir/notes.md/x")), "not a directory")
	p.ProjectDir = ""
	p.fails(p.read(path("@project/a")), "there is no project folder for this conversation", "@state/")
	if description := (fs.Read{Roots: p.Roots}).Spec().Description; !strings.Contains(description, "no @project here") {
		t.Errorf("the description promises a project: %s", description)
	}
	p.ProjectDir = t.TempDir() + "/gone"
	p.fails(p.read(path("@project/a")), "no such file")
}

func TestArgumentsAreReadStrictly(t *testing.T) {
	p := newFixture(t, nil)
	for arguments, want := range map[string]string{
		"":                              "EOF",
		"null":                          "this is no object",
		`["@project/"]`:                 "this is no object",
		`{"path":"@project/"`:           "unexpected EOF",
		`{"path":"@project/"} {}`:       "more after the object",
		`{"path":"@project/","deep":1}`: `unknown field "deep"`,
		`{"path":7}`:                    "path",
		`{}`:                            "",
	} {
		p.fails(p.list(arguments), "error: fs.list", want)
		p.fails(p.read(arguments), "error: fs.read", want)
	}
	p.fails(p.list(`{"path":"@project/","depth":21}`), "depth is 21; allowed is 1 to 20")
	p.fails(p.list(`{"path":"@project/","limit":-1}`), "limit is -1")
	p.fails(p.list(`{"path":"@project/","after":"../x"}`), "after:")
	p.fails(p.search(`{"pattern":"x","max_matches":501}`), "max_matches is 501")
	p.fails(p.search(`{"pattern":"x","skip":-1}`), "skip is -1")
	p.fails(p.search(`{"pattern":""}`), "pattern is empty")
	p.fails(p.search(`{"pattern":"("}`), "RE2", "literal")
	p.fails(p.search(`{"pattern":"(?=x)"}`), "RE2")
	p.fails(p.search(`{"pattern":"x","include":"{a"}`), "include")
}
