package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// typed is how far a command line came that is being typed.
type typed struct {
	node  *kong.Node // the command
	given []string   // its arguments before the cursor
	flag  *kong.Flag // the one before the cursor that lacks its value; nil for none
	key   string     // of a value KEY=VALUE of the flag; "" before the =
	// word is the word at the cursor, prefix what the shell wants before each completion, cut what it has before the
	// cursor already.
	word, prefix, cut string
}

// readTyped reads the arguments after the program's name; the last one is being typed. Bash splits words at = and at :,
// other shells do not.
func readTyped(root *kong.Node, words []string) typed {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	words, cut := joinColons(words)
	last := len(words) - 1
	t := typed{node: root, word: words[last], cut: cut}
	value := t.read(words[:last])
	if value != nil && t.word == "=" { // --set KEY =
		t.flag, t.word = value, ""
	}
	name, rest, hasValue := strings.Cut(t.word, "=")
	switch {
	case t.flag == nil && hasValue:
		if t.flag = flagOf(t.node, name); t.flag != nil {
			t.prefix, t.word = name+"=", rest
		}
	case t.flag != nil && name == "": // --flag =
		t.word = rest
	case t.flag != nil && hasValue && t.flag.PlaceHolder == keyValue:
		t.key, t.prefix, t.word = name, name+"=", rest
	}
	if t.flag == nil || t.flag.PlaceHolder != keyValue {
		t.key = ""
	}
	return t
}

// read goes through the words before the cursor. It returns the flag whose value the last one is.
func (t *typed) read(words []string) (value *kong.Flag) {
	for _, word := range words {
		before := value
		value = nil
		switch {
		case t.flag != nil && word != "=":
			value, t.key, t.flag = t.flag, word, nil
		case t.flag != nil: // --flag =
		case word == "=" && before != nil: // --set KEY =
			t.flag = before
		case strings.HasPrefix(word, "-"):
			if found := flagOf(t.node, word); found != nil && takesValue(found) {
				t.flag, t.key = found, ""
			}
		default:
			t.argument(word)
		}
	}
	return value
}

// argument takes a word that is a command or an argument of one.
func (t *typed) argument(word string) {
	for _, child := range t.node.Children {
		if child.Name == word {
			t.node, t.given = child, nil
			return
		}
	}
	t.given = append(t.given, word)
}

// completions are what the word can become.
func (t *typed) completions() []completion {
	switch {
	case t.key != "":
		return []completion{{names: "VALUE " + t.key}}
	case t.flag != nil:
		return completionsOfFlag(t.flag)
	case strings.HasPrefix(t.word, "-"):
		return completionsOfFlags(t.node)
	}
	return completionsOf(t.node, t.given)
}

// joinColons joins what bash has split at colons. Cut is the part of the last word before the last colon: bash keeps it.
func joinColons(words []string) (joined []string, cut string) {
	for i, word := range words {
		last := len(joined) - 1
		if last >= 0 && (word == ":" || i > 0 && words[i-1] == ":") {
			joined[last] += word
			cut = joined[last][:strings.LastIndex(joined[last], ":")+1]
			continue
		}
		joined, cut = append(joined, word), ""
	}
	return joined, cut
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func takesValue(flag *kong.Flag) bool {
	return !flag.IsBool() && flag.Name != "help" && flag.Name != "version"
}
