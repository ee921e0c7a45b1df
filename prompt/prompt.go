// Package prompt makes the system messages that stand before the history. They are never stored in the
// log: each request gets them anew, so that switching the mode changes them and nothing else.
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

func (p Prompts) text(name string) (string, error) {
	if p.Dir != "" {
		data, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err == nil {
			return string(data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read prompt: %w", err)
		}
	}
	data, err := embedded.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read embedded prompt: %w", err)
	}
	return string(data), nil
}
