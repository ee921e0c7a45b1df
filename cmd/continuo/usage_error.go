package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/continuo-log/continuo/internal/nearest"
)

// explain words a parser's error for people, and says where to read more. At is how far the parser came.
func explain(err error, at *kong.Context) error {
	command, node := "continuo", at.Model.Node
	if selected := at.Selected(); selected != nil {
		command, node = selected.FullPath(), selected
	}
	words := strings.TrimSuffix(err.Error(), ".")
	for _, message := range parserMessages {
		words = message.by.ReplaceAllString(words, message.ours)
	}
	words = enumMessage.ReplaceAllStringFunc(words, allowedWords)
	return fmt.Errorf("%s; see %s --help", commandWords(words, node), command)
}

// parserMessages maps kong's messages to messages for people.
var parserMessages = []struct {
	by   *regexp.Regexp
	ours string
}{
	{regexp.MustCompile(`expected \S+ value but got "EOL" \(<EOL>\)`), `a value is missing`},
	{regexp.MustCompile(`missing value, expecting ".*"`), `a value is missing`},
	{regexp.MustCompile(`expected \S+ value but got (".*") \(\S+ flag\); perhaps try (\S+)\?`), `a value is missing before $1; one that begins with a dash is written $2`},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got (".*")`), `given $1, which is no whole number`},
	{regexp.MustCompile(`expected duration but got (".*?"): .*`), `given $1; give a duration, such as 5s or 2m`},
	{regexp.MustCompile(`expected "<key>=<value>" but got (".*")`), `given $1; write KEY=VALUE`},
	{regexp.MustCompile(`^expected "((?:\[?<.*)|.* \.\.\.)"$`), `$1 is missing`},
	{regexp.MustCompile(`can't be used together`), `exclude each other`},
	{regexp.MustCompile(`^(unknown flag -\w), did you mean .*`), `$1`}, // one letter resembles every other one
	{regexp.MustCompile(`, did you mean (one of )?(.*)\?$`), `; did you mean $2?`},
}

// enumMessage is kong's error of a value that is none of those allowed.
var enumMessage = regexp.MustCompile(`^(\S+) must be one of (.*) but got (".*")$`)

// allowedWords words such an error as one of a setting.
func allowedWords(message string) string {
	parts := enumMessage.FindStringSubmatch(message)
	var names []string
	for name := range strings.SplitSeq(parts[2], ",") {
		if name = strings.Trim(name, `"`); name != "" {
			names = append(names, name)
		}
	}
	return fmt.Sprintf("%s: given %s; allowed: %s", strings.Trim(parts[1], "[]"), parts[3], oneOf(names))
}

// oneOf lists alternatives: a, b or c.
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// synonyms are commands of other programs, and what the same is here.
var synonyms = map[string]string{
	"sessions": "ls", "history": "ls", "list": "ls", "delete": "rm", "remove": "rm",
	"start": "serve", "server": "serve", "settings": "config", "setup": "init", "ask": "chat", "resume": "chat",
}

// commandWords words an error about a command that is missing or unknown; node is where one was expected.
func commandWords(words string, node *kong.Node) string {
	var commands []string
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			commands = append(commands, child.Name)
		}
	}
	if len(commands) == 0 {
		return words
	}
	if strings.HasPrefix(words, "expected ") {
		return "a command is missing: " + oneOf(commands)
	}
	given, found := strings.CutPrefix(words, "unexpected argument ")
	if !found {
		return words
	}
	given, _, _ = strings.Cut(given, "; did you mean ")
	words = "there is no command " + given
	if synonym := synonyms[given]; synonym != "" && node.Type == kong.ApplicationNode {
		return words + "; did you mean " + synonym + "?"
	}
	if begun := slices.IndexFunc(commands, func(name string) bool { return strings.HasPrefix(name, given) }); begun >= 0 {
		return words + "; did you mean " + commands[begun] + "?"
	}
	if near := nearest.Name(given, commands); near != "" {
		return words + "; did you mean " + near + "?"
	}
	if len(commands) <= 12 {
		return words + "; there is " + oneOf(commands)
	}
	return words
}
