package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/wire/prompt"
)

// maxArgument bounds one argument, in bytes: Linux allows 128 KiB including the NUL byte.
const maxArgument = 128<<10 - 1

// invocation returns the command of one request, and its stdin.
func (o Options) invocation(request prompt.Request) (command []string, input string, err error) {
	command = slices.Clone(o.Command)
	text := request.Text()
	if hasPlace(command, SystemPlace) {
		text = request.Prompt
	}
	switch {
	case !o.Argument:
		input = text
	case !hasPlace(command, PromptPlace):
		command = append(command, PromptPlace)
	}
	for i := 1; i < len(command); i++ {
		command[i] = fill(command[i], text, request.Instructions())
		if len(command[i]) > maxArgument {
			return nil, "", fmt.Errorf("the request has %d bytes, and an argument at most %d: pass it to the program on stdin, or reduce its budget", len(command[i]), maxArgument)
		}
	}
	return command, input, nil
}

func hasPlace(command []string, position string) bool {
	return slices.ContainsFunc(command[min(1, len(command)):], func(argument string) bool { return isPlace(argument, position) })
}

// isPlace reports whether an argument is a placeholder, or an option whose value is one.
func isPlace(argument, position string) bool {
	option, ok := strings.CutSuffix(argument, position)
	return ok && (option == "" || strings.HasSuffix(option, "="))
}

// fill replaces an argument's placeholder by a text. A text that is a whole argument never looks like an
// option, and U+FFFD replaces NUL bytes, which no argument can have.
func fill(argument, text, system string) string {
	for position, value := range map[string]string{PromptPlace: text, SystemPlace: system} {
		if !isPlace(argument, position) {
			continue
		}
		value = strings.ReplaceAll(value, "\x00", "\uFFFD")
		if argument == position && strings.HasPrefix(value, "-") {
			value = " " + value
		}
		return strings.TrimSuffix(argument, position) + value
	}
	return argument
}
