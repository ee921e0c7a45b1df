// Package prompt makes the system messages that stand before the history. They are never stored in the
// log: they are built for each request, so that switching the mode changes them and nothing else.
//
// The texts are embedded; a folder with files of the same names replaces them one by one.
package prompt

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

//go:embed *.md
var embedded embed.FS

// The names of the files that make up the system messages.
const (
	baseRulesChat = "system-base-rules-chat.md"
	baseRulesRun  = "system-base-rules-run.md"
	toolPolicy    = "system-tool-policy.md"
)

// Prompts makes system messages. The zero value uses the embedded texts.
type Prompts struct {
	// Dir is a folder whose files replace the embedded ones of the same name. Default: none.
	Dir string
}

// System returns the system messages for a mode, in order: base rules, tool policy, persona (never in
// chat), mode banner. Empty ones are left out.
func (p Prompts) System(mode continuo.Mode, persona string) ([]string, error) {
	base := baseRulesChat
	if mode == continuo.ModeRun {
		base = baseRulesRun
	}
	rules, err := p.text(base)
	if err != nil {
		return nil, err
	}
	policy, err := p.text(toolPolicy)
	if err != nil {
		return nil, err
	}
	if mode == continuo.ModeChat {
		persona = ""
	}
	var messages []string
	for _, text := range []string{rules, policy, persona, Banner(mode)} {
		if text = strings.TrimSpace(text); text != "" {
			messages = append(messages, text)
		}
	}
	return messages, nil
}

// Banner tells the model which mode is active.
func Banner(mode continuo.Mode) string {
	return fmt.Sprintf("MODE\n- active: %s\n- note: history may include other modes; follow current instructions.", mode)
}

// Source says where a text comes from.
type Source struct {
	Name string
	// File replaces the embedded text; "" for none.
	File string
	// Empty says that the file leaves its message out.
	Empty bool
	// Err is why the text cannot be used.
	Err error
}

// Sources lists the texts by name.
func (p Prompts) Sources() []Source {
	files, _ := embedded.ReadDir(".") // never fails
	sources := make([]Source, len(files))
	for i, file := range files {
		text, from, err := p.read(file.Name())
		sources[i] = Source{Name: file.Name(), File: from, Empty: strings.TrimSpace(text) == "" && err == nil, Err: err}
	}
	return sources
}

func (p Prompts) text(name string) (string, error) {
	text, _, err := p.read(name)
	return text, err
}

// read returns a text and the file that it comes from, "" when it is embedded.
func (p Prompts) read(name string) (text, from string, err error) {
	if p.Dir != "" {
		from = filepath.Join(p.Dir, name)
		data, err := os.ReadFile(from)
		switch {
		case err == nil && !utf8.Valid(data): // JSON would carry another text, and the request could not be made again
			return "", from, fmt.Errorf("read prompt: %s: it is not UTF-8 text; save it as UTF-8", from)
		case err == nil:
			return string(data), from, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", from, fmt.Errorf("read prompt: %w", err)
		}
	}
	data, err := embedded.ReadFile(name)
	if err != nil {
		return "", "", fmt.Errorf("read embedded prompt: %w", err)
	}
	return string(data), "", nil
}
