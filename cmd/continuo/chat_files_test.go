package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// What a message takes along: text, images and PDF files, and nothing that is not named as a file.
func TestFilesInAMessage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{
		"notes.txt": "one\n```\ntwo\n", "a b.png": "\x89PNG\r\n\x1a\n....", "paper.pdf": "%PDF-1.7 ...", "program": "\x7fELF\x00\x00", "large.txt": strings.Repeat("x", maxTextFile+1), "sub/deep.go": "package deep\n",
	} {
		makeFile(t, name, data)
	}
	var said bytes.Buffer
	chat := &chatSession{app: &app{console: &console{out: &said}, env: []string{"HOME=" + t.TempDir()}}, screen: &screenBackend{}}
	for _, test := range []struct{ message, types, problem string }{
		{"see @notes.txt, please", "text text", ""},
		{`@"a b.png" and (@paper.pdf)`, "text image_url file", ""},
		{"@notes.txt @notes.txt", "text text", ""},
		{"mail me@notes.txt or @nobody, @sub", "", ""},
		{"and @gone.txt?", "", ""},
		{"@program", "", "neither text nor an image"},
		{"@large.txt", "", "longer than 1.0 MB"},
	} {
		content, err := chat.contentOf(test.message, nil)
		if test.problem != "" {
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%q: %v", test.message, err)
			}
			continue
		}
		var types []string
		for _, part := range content.Parts() {
			types = append(types, part.Type)
		}
		if got := strings.Join(types, " "); err != nil || got != test.types {
			t.Errorf("%q became %q: %v", test.message, got, err)
		}
		if test.types == "" && content.String() != test.message {
			t.Errorf("%q became %q", test.message, content.String())
		}
	}
	if want := "@gone.txt is no file: the message has the name only.\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	if got := fileNames("sub/d", nil); !slices.Equal(got, []string{"sub/deep.go"}) {
		t.Errorf("files below sub: %q", got)
	}
	if err := os.Remove("notes.txt"); err != nil {
		t.Fatal(err)
	}
	if got := fileNames("n", nil); got != nil {
		t.Errorf("files that are gone: %q", got)
	}
}
