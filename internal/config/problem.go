package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxProblems is how many problems one Load reports; the rest is counted.
const maxProblems = 50

// problems collects the errors in the settings, in order, so that all are reported at once.
type problems struct {
	list []error
	more int
}

// add records a problem with its position before it. A key is not repeated behind a flag of the same name.
func (p *problems) add(at Origin, format string, args ...any) {
	err, position := fmt.Errorf(format, args...), at.position()
	if at.Kind == FromFlag && strings.HasPrefix(err.Error(), strings.TrimPrefix(position, "--")+": ") {
		p.addError(fmt.Errorf("--%w", err))
		return
	}
	p.addError(fmt.Errorf("%s: %w", position, err))
}

func (p *problems) addError(err error) {
	if !p.full() {
		p.list = append(p.list, err)
	}
}

// full counts a problem that exceeds the limit; call it before building a long explanation.
func (p *problems) full() bool {
	if len(p.list) < maxProblems {
		return false
	}
	p.more++
	return true
}

// err joins the problems, one per line; nil when there are none.
func (p *problems) err() error {
	list := p.list
	if p.more > 0 {
		list = append(list[:len(list):len(list)], fmt.Errorf("and %d more", p.more))
	}
	return errors.Join(list...)
}

// quoted formats foreign text for an error: on one line and not too long.
func quoted(text string) string {
	const limit = 60
	if runes := []rune(text); len(runes) > limit {
		return strconv.Quote(string(runes[:limit])) + fmt.Sprintf("… (%d characters)", len(runes))
	}
	return strconv.Quote(text)
}

// keyText formats a key for an error: bare if it has the form of one, quoted otherwise.
func keyText(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/") == ""
	if plain && text != "" && len(text) <= 80 {
		return text
	}
	return quoted(text)
}
