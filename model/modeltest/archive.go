package modeltest

import (
	"bytes"
	"strings"
)

// archive is a file in the txtar form: a comment and named sections.
type archive struct {
	comment  []byte
	sections []section
}

type section struct {
	name string
	data []byte
}

func parseArchive(data []byte) *archive {
	a := &archive{}
	target := &a.comment
	for _, line := range bytes.SplitAfter(data, []byte("\n")) {
		if name, ok := sectionName(line); ok {
			a.sections = append(a.sections, section{name: name})
			target = &a.sections[len(a.sections)-1].data
			continue
		}
		*target = append(*target, line...)
	}
	return a
}

func sectionName(line []byte) (string, bool) {
	text := strings.TrimSpace(string(line))
	if !strings.HasPrefix(text, "-- ") || !strings.HasSuffix(text, " --") || len(text) < 7 {
		return "", false
	}
	return strings.TrimSpace(text[3 : len(text)-3]), true
}

func (a *archive) get(name string) []byte {
	for _, section := range a.sections {
		if section.name == name {
			return section.data
		}
	}
	return nil
}

func (a *archive) set(name string, data []byte) {
	for i := range a.sections {
		if a.sections[i].name == name {
			a.sections[i].data = data
			return
		}
	}
	a.sections = append(a.sections, section{name, data})
}

func (a *archive) format() []byte {
	out := bytes.Clone(a.comment)
	for _, section := range a.sections {
		out = append(append(append(out, "-- "...), section.name...), " --\n"...)
		out = append(out, section.data...)
	}
	return out
}
