package main

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/chatscreen"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/term"
)

// The largest files that a message takes along, in bytes.
const (
	maxTextFile  = 1 << 20
	maxMediaFile = 20 << 20
)

// contentOf is a message with files: those that --file names, and those that the text names after an @. A name after an @
// that is no file stays text.
func (t *chatSession) contentOf(message string, files []string) (continuo.Content, error) {
	names := slices.Clone(files)
	if t.screen != nil {
		for _, name := range chatscreen.Mentions(message) {
			switch info, err := os.Stat(expandHome(name, t.env)); {
			case slices.Contains(names, name):
			case err == nil && info.Mode().IsRegular():
				names = append(names, name)
			case strings.ContainsAny(name, "./"):
				t.printAside("@%s is no file: the message has the name only.", term.OneLine(name, 100))
			}
		}
	}
	if len(names) == 0 {
		return continuo.Text(message), nil
	}
	parts := []continuo.Part{continuo.TextPart(message)}
	for _, name := range names {
		part, err := filePart(name, expandHome(name, t.env))
		if err != nil {
			return continuo.Content{}, err
		}
		parts = append(parts, part)
	}
	return continuo.Parts(parts...), nil
}

// expandHome replaces ~ at the beginning of a path.
func expandHome(name string, env []string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(envValue(env, "HOME"), rest)
	}
	return name
}

// filePart is a file as a part of a message: its text, an image, or a PDF file.
func filePart(name, path string) (continuo.Part, error) {
	data, err := readFile(path)
	if err != nil {
		return continuo.Part{}, usage("%s", unreadable(name, err))
	}
	kind := http.DetectContentType(data)
	encoded := func(kind string) string { return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data) }
	switch {
	case strings.HasPrefix(kind, "image/") && chatscreen.MediaType(name) != "":
		raw := rawjson.MustMarshal(map[string]any{"type": "image_url", "image_url": map[string]string{"url": encoded(kind)}})
		return continuo.Part{Type: "image_url", Raw: raw}, nil
	case kind == "application/pdf":
		raw := rawjson.MustMarshal(map[string]any{"type": "file", "file": map[string]string{"filename": filepath.Base(name), "file_data": encoded(kind)}})
		return continuo.Part{Type: "file", Raw: raw}, nil
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		return continuo.Part{}, usage("the file %s is neither text nor an image (png, jpeg, gif, webp) nor PDF", term.OneLine(name, 100))
	case len(data) > maxTextFile:
		return continuo.Part{}, usage("the file %s is longer than %s", term.OneLine(name, 100), term.Size(maxTextFile))
	}
	return continuo.TextPart(chatscreen.FileText(name, string(data))), nil
}

// unreadable says why a file that a message names cannot be read.
func unreadable(name string, err error) string {
	name = term.OneLine(name, 100)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no file " + name
	case errors.Is(err, syscall.EISDIR):
		return name + " is a folder; name a file"
	case errors.Is(err, fs.ErrPermission):
		return "the file " + name + " may not be read by this user"
	default:
		return fmt.Sprintf("the file %s: %v", name, err)
	}
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxMediaFile+1))
	if err == nil && len(data) > maxMediaFile {
		err = fmt.Errorf("it is longer than %s", term.Size(maxMediaFile))
	}
	return data, err
}

// maxFiles bounds how many names of files are offered.
const maxFiles = 50

// fileNames are the files and folders whose path begins with a text.
func fileNames(beginning string, env []string) (names []string) {
	folder, start := filepath.Split(beginning)
	entries, _ := os.ReadDir(cmp.Or(expandHome(folder, env), "."))
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, start) || strings.HasPrefix(name, ".") && !strings.HasPrefix(start, ".") {
			continue
		}
		if entry.IsDir() {
			name += "/"
		}
		if names = append(names, folder+name); len(names) == maxFiles {
			break
		}
	}
	return names
}
