package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// The colours of code.
const (
	keywordStyle = "35"
	stringStyle  = "32"
	numberStyle  = "33"
	commentStyle = "2;3"
	callStyle    = "34"
	addedStyle   = "32"
	removedStyle = "31"
	hunkStyle    = "36"
)

// language is what the scanner has to know of a language.
type language struct {
	comments []string // that end with the line
	block    [2]string
	quotes   string   // characters that begin and end strings
	long     []string // quotes of strings over several lines
	ignores  bool     // the case of keywords
	keywords string
}

var (
	cLike = language{comments: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: `"'`, long: []string{"`"}, keywords: " abstract any as async await bool boolean break byte case catch chan char class const constexpr continue debugger default defer delete do double else enum export extends extern false final finally float fn for foreach from func function get go goto if impl implements import in inline instanceof int interface internal let long loop map match mod module mut namespace new nil null nullptr number object of operator out override package private protected pub public range readonly record ref return sealed select self set short signed sizeof static string struct super switch synchronized template this throw throws trait true try type typedef typeof undefined union unsafe unsigned use using val var virtual void volatile when where while with yield "}
	hash  = language{comments: []string{"#"}, quotes: `"'`, long: []string{`"""`, "'''"}, keywords: " False None True and as assert async await begin break case class continue def del do done elif else elsif end ensure esac except export fi finally for from function global if import in is lambda local module next nil nonlocal not or pass raise redo require rescue retry return self source super then true false undef unless until when while with yield echo exit cd set unset sudo "}
	sql   = language{comments: []string{"--"}, block: [2]string{"/*", "*/"}, quotes: `'"`, ignores: true, keywords: " add all alter and as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists explain false foreign from full grant group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction true union unique update using values view when where with "}
	data  = language{comments: []string{"#"}, quotes: `"'`, keywords: " true false null yes no on off "}
	plain = language{}
)

var languages = map[string]language{
	"": plain, "text": plain, "txt": plain, "plain": plain, "console": hash, "output": plain, "markdown": plain, "md": plain,
	"python": hash, "py": hash, "ruby": hash, "rb": hash, "sh": hash, "bash": hash, "zsh": hash, "fish": hash, "shell": hash, "make": hash, "makefile": hash, "dockerfile": hash, "docker": hash, "perl": hash, "r": hash, "elixir": hash,
	"yaml": data, "yml": data, "toml": data, "ini": data, "json": data, "jsonc": cLike, "json5": cLike, "env": data, "conf": data,
	"sql": sql, "postgresql": sql, "sqlite": sql, "mysql": sql, "lua": sql, "haskell": sql,
}

func languageOf(name string) language {
	if found, ok := languages[strings.ToLower(name)]; ok {
		return found
	}
	return cLike
}

// highlight colours code and cuts its lines to a width; nothing is left out.
func highlight(lines []string, name string, width int) []string {
	var shown []string
	s := scanner{language: languageOf(name)}
	for _, line := range lines {
		line = strings.ReplaceAll(line, "\t", "    ")
		var runs []run
		if name == "diff" || name == "patch" {
			runs = []run{{line, diffStyle(line)}}
		} else {
			runs = s.line(line)
		}
		shown = append(shown, cut(runs, width)...)
	}
	return shown
}

func diffStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return bold
	case strings.HasPrefix(line, "+"):
		return addedStyle
	case strings.HasPrefix(line, "-"):
		return removedStyle
	case strings.HasPrefix(line, "@@"):
		return hunkStyle
	}
	return ""
}

// cut cuts a styled line into lines of a width, at any character.
func cut(runs []run, width int) []string {
	var lines []string
	var line strings.Builder
	column := 0
	for _, part := range runs {
		rest, state, piece := part.text, -1, ""
		for len(rest) > 0 {
			var cluster string
			var columns int
			cluster, rest, columns, state = uniseg.FirstGraphemeClusterInString(rest, state)
			if column+columns > width && column > 0 {
				line.WriteString(styled(part.style, piece))
				lines = append(lines, line.String())
				line.Reset()
				column, piece = 0, ""
			}
			piece, column = piece+cluster, column+columns
		}
		line.WriteString(styled(part.style, piece))
	}
	return append(lines, line.String())
}

// scanner colours the lines of a text; open is the end of a comment or string that a line before has begun.
type scanner struct {
	language
	open      string
	openStyle string
}

// line colours a line.
func (s *scanner) line(line string) (runs []run) {
	for len(line) > 0 {
		length, style := s.next(line)
		if last := len(runs) - 1; last >= 0 && runs[last].style == style {
			runs[last].text += line[:length]
		} else {
			runs = append(runs, run{line[:length], style})
		}
		line = line[length:]
	}
	return runs
}

// next is the length and the style of the next token.
func (s *scanner) next(line string) (length int, style string) {
	if s.open != "" {
		return s.until(line, 0, s.open, s.openStyle)
	}
	for _, mark := range s.comments {
		if strings.HasPrefix(line, mark) {
			return len(line), commentStyle
		}
	}
	if begin := s.block[0]; begin != "" && strings.HasPrefix(line, begin) {
		return s.until(line, len(begin), s.block[1], commentStyle)
	}
	for _, quote := range s.long {
		if strings.HasPrefix(line, quote) {
			return s.until(line, len(quote), quote, stringStyle)
		}
	}
	first := rune(line[0])
	switch {
	case strings.ContainsRune(s.quotes, first):
		return quoted(line), stringStyle
	case first >= '0' && first <= '9':
		return spanOf(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_' }), numberStyle
	}
	if length = spanOf(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }); length > 0 {
		return length, s.wordStyle(line[:length], line[length:])
	}
	_, length = utf8.DecodeRuneInString(line)
	return length, ""
}

func (s *scanner) wordStyle(word, rest string) string {
	if s.ignores {
		word = strings.ToLower(word)
	}
	switch {
	case s.keywords == "":
		return ""
	case strings.Contains(s.keywords, " "+word+" "):
		return keywordStyle
	case strings.HasPrefix(rest, "("):
		return callStyle
	}
	return ""
}

// until is the text up to an end, which may be on a later line.
func (s *scanner) until(line string, from int, end, style string) (int, string) {
	if at := strings.Index(line[from:], end); at >= 0 {
		s.open = ""
		return from + at + len(end), style
	}
	s.open, s.openStyle = end, style
	return len(line), style
}

// quoted is the length of a string, up to its end or that of the line.
func quoted(line string) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case line[0]:
			return i + 1
		}
	}
	return len(line)
}

// spanOf is the length of the beginning of a text whose characters all pass.
func spanOf(line string, passes func(rune) bool) int {
	for i, r := range line {
		if !passes(r) {
			return i
		}
	}
	return len(line)
}
