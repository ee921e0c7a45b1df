package main

import (
	"cmp"
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
	words = enumMessage.ReplaceAllStringFunc(flagWords(words), allowedWords)
	return fmt.Errorf("%s; see %s --help", messageWords(commandWords(words, node), node), command)
}

// messageHint says how a message is given, where it was given as an argument.
const messageHint = "; to send a message, write --message TEXT"

// messageWords adds to the error about an argument how a message is given, where it may be one.
func messageWords(words string, node *kong.Node) string {
	argument, unexpected := strings.CutPrefix(words, "unexpected argument ")
	command, unknown := strings.CutPrefix(words, "there is no command ")
	switch {
	case unexpected && node.Name == "chat":
		return fmt.Sprintf("unexpected argument %q%s", argument, messageHint)
	case unknown && node.Type == kong.ApplicationNode && strings.Contains(command, " ") && !strings.Contains(command, ";"):
		return fmt.Sprintf("there is no command %q; to send a message, write continuo chat --message TEXT", command)
	}
	return words
}

// parserMessages maps kong's messages to messages for people.
var parserMessages = []struct {
	by   *regexp.Regexp
	ours string
}{
	{regexp.MustCompile(`expected \S+ value but got "EOL" \(<EOL>\)`), `a value is missing`},
	{regexp.MustCompile(`missing value, expecting ".*"`), `a value is missing`},
	{regexp.MustCompile(`expected \S+ value but got (".*") \(\S+ flag\); perhaps try (\S+)\?`), `a value is missing before $1; one that begins with a dash is written $2`},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got (".*")`), `given $1; allowed: a whole number`},
	{regexp.MustCompile(`expected duration but got (".*?"): .*`), `given $1; allowed: a duration, such as 5s or 2m`},
	{regexp.MustCompile(`expected "<key>=<value>" but got (".*")`), `given $1; write KEY=VALUE`},
	{regexp.MustCompile(`^expected "(\[?<.*> <.*)"$`), `$1 are missing`},
	{regexp.MustCompile(`^expected "((?:\[?<.*)|.* \.\.\.)"$`), `$1 is missing`},
	{regexp.MustCompile(`can't be used together`), `exclude each other`},
	{regexp.MustCompile(`(unexpected argument .*), did you mean (one of )?(.*)\?$`), `$1; did you mean $3?`},
}

// flagMessage is kong's error of an unknown flag. Its suggestions may resemble the flag only remotely.
var flagMessage = regexp.MustCompile(`^unknown flag (-[^,]*)(?:, did you mean (?:one of )?(.*)\?)?$`)

// flagSynonyms are flags of other programs, and what the same is here.
var flagSynonyms = map[string]string{
	"-v": "--version", "-V": "--version", "--verbose": "--set log.level=debug", "--port": "--listen", "--host": "--listen", "--address": "--listen", "--db": "--store",
}

// flagWords words an error about an unknown flag, and keeps the nearest suggestion.
func flagWords(words string) string {
	parts := flagMessage.FindStringSubmatch(words)
	if parts == nil {
		return words
	}
	words = "unknown flag " + parts[1]
	meant := flagSynonyms[parts[1]]
	if meant == "" && len(parts[1]) > len("-x") { // one letter resembles every other one
		suggested := strings.Split(strings.ReplaceAll(parts[2], `"`, ""), ", ")
		slices.SortStableFunc(suggested, func(a, b string) int { // swapped letters rather than one that lacks
			return cmp.Compare(max(len(a)-len(parts[1]), len(parts[1])-len(a)), max(len(b)-len(parts[1]), len(parts[1])-len(b)))
		})
		meant = nearest.Name(parts[1], suggested)
	}
	if meant == "" {
		return words
	}
	return words + "; did you mean " + meant + "?"
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
	if inside := commandsInside(node, given); len(inside) > 0 {
		return words + "; did you mean " + oneOf(inside) + "?"
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

// commandsInside are the commands of this name in groups of commands, such as conversations prune.
func commandsInside(node *kong.Node, name string) (found []string) {
	for _, group := range node.Children {
		for _, child := range group.Children {
			if child.Name == name && child.Type == kong.CommandNode && !child.Hidden {
				found = append(found, group.Name+" "+name)
			}
		}
	}
	if len(found) > 3 { // as many have a list
		return nil
	}
	return found
}
