package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// loadFile finds the settings file and applies it.
func (l *loader) loadFile(explicit string) {
	name, data, err := l.readFile(explicit)
	if err != nil {
		l.broken = true
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no file %s; continuo init %s makes one", explicit, explicit)
		} else if errors.Is(err, syscall.EISDIR) {
			err = fmt.Errorf("%s is a folder; name a file", explicit)
		}
		l.problems.addError(fmt.Errorf("read settings: %w", err))
		return
	}
	l.config.File = name
	if name != "" {
		l.applyFile(name, data)
	}
}

// readFile reads the given file, or the first of the default ones that exists.
func (l *loader) readFile(explicit string) (name string, data []byte, err error) {
	if explicit != "" {
		data, err = readBounded(explicit)
		return explicit, data, err
	}
	candidates := []string{"continuo.yaml"}
	if folder := l.xdg("XDG_CONFIG_HOME", ".config"); folder != "" {
		candidates = append(candidates, filepath.Join(folder, "continuo", "continuo.yaml"))
	}
	for _, name := range candidates {
		data, err := readBounded(name)
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) // services run with HOME=/dev/null
		if !absent {
			return name, data, err
		}
	}
	return "", nil, nil
}

func readBounded(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes, which no settings file should be", name, maxFileBytes)
	}
	return data, err
}

// applyFile applies the file's text.
func (l *loader) applyFile(name string, data []byte) {
	root, err := parseYAML(data)
	if wrong := (*yamltree.Error)(nil); errors.As(err, &wrong) {
		l.broken = true
		l.problems.add(Origin{Kind: FromFile, Name: name, Line: wrong.At.Line, Column: wrong.At.Column}, "%w", err)
		return
	}
	reader := fileReader{l, name}
	reader.mapping("", root)
}

// fileReader applies the nodes of a file to the loader's settings.
type fileReader struct {
	*loader
	name string
}

// at is the position of a node; of a mapping, that of its first key.
func (r *fileReader) at(n *yamltree.Node) Origin {
	position := n.At
	if len(n.Fields) > 0 {
		position = n.Fields[0].Key.At
	}
	return Origin{Kind: FromFile, Name: r.name, Line: position.Line, Column: position.Column}
}

// mapping applies the fields of a section; prefix is its key with a dot, "" for the whole file.
func (r *fileReader) mapping(prefix string, section *yamltree.Node) {
	for _, f := range section.Fields {
		key := prefix + f.Key.Text
		g := groupIn(key)
		switch row := r.row(key); {
		case g != nil && g.key == key:
			r.group(g, f.Value)
		case g != nil:
			r.mcpSection(g, f.Value)
		case row != nil && strings.Contains(f.Key.Text, "."), isGroup(key):
			parent, last := splitKey(key)
			r.problems.add(r.at(f.Key), "the key %s must be written as %s, indented below %s:", key, last, parent)
		case row != nil:
			r.set(row, f.Value)
		case r.isSection(key):
			r.section(key, f.Value)
		default:
			r.unknown(key, f.Key)
		}
	}
}

func (r *fileReader) section(key string, value *yamltree.Node) {
	switch value.Kind {
	case yamltree.Null: // everything below is commented out
	case yamltree.Mapping:
		r.mapping(key+".", value)
	default:
		r.problems.add(r.at(value), "%s is no setting but a section: write its settings indented below it", key)
	}
}

// set applies one value to one setting.
func (r *fileReader) set(row *setting, value *yamltree.Node) {
	if row.value.mapping != nil {
		r.setMapping(row, value)
		return
	}
	g := rawValue{kind: value.Kind, text: value.Text, origin: r.at(value)}
	if row.value.node != nil && value.Kind == yamltree.Mapping {
		text, err := row.value.node(value)
		if err != nil {
			r.problems.add(r.at(value), "%s: %w", row.key, err)
			return
		}
		g.text = text
	}
	for _, item := range value.Items {
		if item.Kind != yamltree.Text && row.value.setList != nil {
			r.problems.add(r.at(item), "%s: an item that is no text; allowed: %s", row.key, row.value.allowed)
			return
		}
		g.items = append(g.items, item.Text)
	}
	r.apply(row, g)
}

func (r *fileReader) unknown(key string, at *yamltree.Node) {
	if !r.problems.full() {
		r.problems.add(r.at(at), "unknown key %s; %s", keyText(key), r.advice(key))
	}
}

// advice suggests the key that was probably meant instead of an unknown one.
func (l *loader) advice(key string) string {
	var keys, lasts []string
	byLast := map[string]string{}
	for _, row := range l.table {
		section, last := splitKey(row.key)
		for _, candidate := range []string{row.key, section} {
			if candidate != "" {
				keys = append(keys, candidate)
			}
		}
		for _, alias := range []string{last, row.knownAs} {
			if alias != "" && byLast[alias] == "" {
				byLast[alias] = row.key
				lasts = append(lasts, alias)
			}
		}
	}
	for _, g := range groups {
		keys = append(keys, g.key)
	}
	section, last := splitKey(key)
	near := nearest.Name(key, keys)
	if near == "" {
		near = byLast[nearest.Name(last, lasts)]
	}
	return meant(near, l.listed(section))
}

// meant asks whether the near key was meant, or returns otherwise if there is none.
func meant(near, otherwise string) string {
	if near == "" {
		return otherwise
	}
	return "did you mean " + near + "?"
}

// listed names the keys of a section, or the sections and keys of the file.
func (l *loader) listed(section string) string {
	if section != "" && l.isSection(section) {
		return "the keys of " + section + " are " + strings.Join(l.below(section+"."), ", ")
	}
	names := l.below("")
	for _, g := range groups {
		names = append(names, g.section())
	}
	return "the file's keys are " + strings.Join(names, ", ")
}

// splitKey splits context.max_messages into context and max_messages.
func splitKey(key string) (section, last string) {
	if at := strings.LastIndexByte(key, '.'); at >= 0 {
		return key[:at], key[at+1:]
	}
	return "", key
}
