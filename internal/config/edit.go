package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/lazy"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// errByHand says that a settings file is written in a way in which Set changes nothing.
var errByHand = errors.New("the value is not written on a line of its own; change it in the file")

// Set returns the text of a settings file with one setting changed, as it would be given by a flag. Comments and the
// order of lines are kept; a commented-out line of the setting, as in Example, is where it is written. Whether the value is
// allowed is for Load to say.
func Set(data []byte, key, value string) ([]byte, error) {
	path, row, err := settingAt(key)
	if err != nil {
		return nil, err
	}
	if row.value.mapping != nil || row.value.node != nil {
		return nil, fmt.Errorf("%s is a mapping; write it in the file", key)
	}
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	text := row.written(value)
	edited := &edit{lines: strings.Split(string(data), "\n")}
	if err := edited.set(root, path, text); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	result := []byte(strings.Join(edited.lines, "\n"))
	changed, err := parseYAML(result)
	if err != nil || !slices.Equal(without(root, path), without(changed, path)) {
		return nil, fmt.Errorf("%s: %w", key, errByHand)
	}
	return result, nil
}

// CheckKey says what is wrong with the key of a setting; nil if there is one, or can be.
func CheckKey(key string) error {
	_, _, err := settingAt(key)
	return err
}

// Renamed is an error of Load whose positions name another file.
func Renamed(err error, from, to string) error {
	return errors.New(strings.ReplaceAll(err.Error(), from, to))
}

// FindFile finds the settings file that Load reads where none is named; "" for none. env is as os.Environ gives it.
func FindFile(env []string) string {
	name, _, err := newLoader(env).readFile("")
	if err != nil {
		return ""
	}
	return name
}

// settingAt finds the setting of a key, and the keys on the way to it. A name may have dots: what follows it is the longest
// key that there is.
func settingAt(key string) (path []string, row *setting, err error) {
	l := newLoader(nil)
	if row := l.row(key); row != nil {
		return strings.Split(key, "."), row, nil
	}
	section, _, _ := strings.Cut(key, ".")
	g := groupIn(section)
	rest, ok := "", false
	if g != nil {
		rest, ok = strings.CutPrefix(key, g.key+".")
	}
	if !ok {
		return nil, nil, fmt.Errorf("unknown key %s; %s", keyText(key), l.advice(key))
	}
	e := &entry{group: g, name: "NAME", config: g.begin("NAME")}
	e.table = binder{fileOnly: true}.settings("", e.config)
	for at := range rest {
		if rest[at] != '.' || at == 0 {
			continue
		}
		if row := e.table.row(rest[at+1:]); row != nil {
			row.key = key
			return slices.Concat(strings.Split(g.key, "."), []string{rest[:at]}, strings.Split(rest[at+1:], ".")), row, nil
		}
	}
	_, last := splitKey(rest)
	return nil, nil, fmt.Errorf("unknown key %s; %s", keyText(key), e.advice("", last, g.full))
}

var (
	plainText = lazy.Regexp(`^[A-Za-z0-9_./~$][A-Za-z0-9_./~$:@%+=-]*$`)
	notText   = lazy.Regexp(`^(?i:true|false|yes|no|on|off|null|~|[-+.]?[0-9][0-9_.eE+-]*|0x[0-9a-f]+)$`)
)

// Scalar is a text as it is written in YAML.
func Scalar(text string) string {
	if plainText().MatchString(text) && !strings.HasSuffix(text, ":") && !notText().MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

// written is a value as it is written in the file.
func (s *setting) written(value string) string {
	switch {
	case s.value.setList != nil:
		items := s.value.split(value)
		for i := range items {
			items[i] = Scalar(items[i])
		}
		return "[" + strings.Join(items, ", ") + "]"
	case slices.Equal(s.value.takes, []yamltree.Kind{yamltree.Text}):
		return Scalar(value)
	}
	return value
}

// edit changes the lines of a file.
type edit struct{ lines []string }

func (e *edit) set(at *yamltree.Node, path []string, text string) error {
	indent, parent := 0, 0 // of the keys, and the line after which they stand; 0 is before the first
	for i, part := range path {
		if len(at.Fields) > 0 {
			indent = at.Fields[0].Key.At.Column - 1
		}
		field := slices.IndexFunc(at.Fields, func(f yamltree.Field) bool { return f.Key.Text == part })
		if field < 0 {
			return e.insert(parent, indent, path[i:], text, i == 0)
		}
		found := at.Fields[field]
		if i == len(path)-1 {
			return e.replace(found, text)
		}
		if found.Value.Kind != yamltree.Mapping && found.Value.Kind != yamltree.Null {
			return errByHand
		}
		at, parent, indent = found.Value, found.Key.At.Line, found.Key.At.Column-1+2
	}
	return nil
}

var afterKey = lazy.Regexp(`^((?:[^\s:"']+|"[^"]*"|'[^']*')\s*:)(\s+|$)(\[(?:[^\]"']|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')*\]|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^#\s"'\[{|>&*!](?:[^#]|[^\s]#)*?)?(\s+#.*|\s*)$`)

// replace changes the value of a key, where both are on one line.
func (e *edit) replace(f yamltree.Field, text string) error {
	at := f.Key.At
	line := []rune(e.lines[at.Line-1])
	head, tail := string(line[:at.Column-1]), string(line[at.Column-1:])
	found := afterKey().FindStringSubmatch(tail)
	if found == nil || strings.TrimSpace(head) != "" || found[3] == "" && f.Value.Kind != yamltree.Null {
		return errByHand
	}
	e.lines[at.Line-1] = head + found[1] + " " + text + strings.TrimRight(found[4], " \t\r")
	return nil
}

// insert writes keys that are not there below a line: where the setting is commented out, or else right after the line, or
// at the end of the file.
func (e *edit) insert(parent, indent int, path []string, text string, top bool) error {
	if len(path) == 1 {
		if at := e.commentedOut(parent, path[0]); at >= 0 {
			comment := trailing().FindString(e.lines[at][strings.Index(e.lines[at], path[0]):])
			e.lines[at] = strings.Repeat(" ", indent) + path[0] + ": " + text + comment
			return nil
		}
	}
	var added []string
	for i, part := range path {
		line := strings.Repeat(" ", indent+2*i) + nameText(part) + ":"
		if i == len(path)-1 {
			line += " " + text
		}
		added = append(added, line)
	}
	if !top {
		e.lines = slices.Insert(e.lines, parent, added...)
		return nil
	}
	for len(e.lines) > 0 && strings.TrimSpace(e.lines[len(e.lines)-1]) == "" {
		e.lines = e.lines[:len(e.lines)-1]
	}
	if len(e.lines) > 0 && len(path) > 1 {
		e.lines = append(e.lines, "")
	}
	e.lines = append(append(e.lines, added...), "")
	return nil
}

// nameText is a key as it is written.
func nameText(name string) string {
	if plainText().MatchString(name) && !notText().MatchString(name) && !strings.Contains(name, ":") {
		return name
	}
	return strconv.Quote(name)
}

var (
	trailing     = lazy.Regexp(`\s+#.*$`)
	goesOn       = lazy.Regexp(`^#\s{4}`)
	commentedKey = lazy.Regexp(`^#\s*[\w-]+:( |$)`)
)

// commentedOut is the index of the line that has the key behind a # in the section that begins after a line; -1 for none, and
// where its value goes on in the next line.
func (e *edit) commentedOut(parent int, key string) int {
	form := regexp.MustCompile(`^\s*#\s*` + regexp.QuoteMeta(key) + `:( |$)`)
	for i := parent; i < len(e.lines); i++ {
		line := e.lines[i]
		if parent > 0 && line != "" && line[0] != ' ' && line[0] != '#' || parent == 0 && strings.HasPrefix(line, "#  ") {
			return -1 // the next section begins
		}
		if form.MatchString(line) {
			if i+1 < len(e.lines) && goesOn().MatchString(e.lines[i+1]) && !commentedKey().MatchString(e.lines[i+1]) {
				return -1
			}
			return i
		}
	}
	return -1
}

// without lists the scalars of a file with their keys, but for those at a path.
func without(root *yamltree.Node, path []string) []string {
	var all []string
	var walk func(n *yamltree.Node, at []string)
	walk = func(n *yamltree.Node, at []string) {
		if slices.Equal(at, path) {
			return
		}
		for _, f := range n.Fields {
			walk(f.Value, append(slices.Clone(at), f.Key.Text))
		}
		for i, item := range n.Items {
			walk(item, append(slices.Clone(at), strconv.Itoa(i)))
		}
		if len(n.Fields) == 0 && n.Kind != yamltree.Mapping && n.Kind != yamltree.Null {
			all = append(all, strings.Join(at, "\x00")+"="+strconv.Itoa(int(n.Kind))+n.Text)
		}
	}
	walk(root, nil)
	return all
}
