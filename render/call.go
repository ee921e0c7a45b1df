package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// ParseCall reads the text of a call, {"name": …, "args": …}. It returns the arguments' bytes unchanged;
// without any, {}. It also accepts "arguments" and "parameters", the names in other protocols, for "args".
// The error explains to a model what is wrong and where.
func ParseCall(text string) (name, arguments string, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", "", errors.New("nothing follows the colon")
	}
	if text[0] != '{' {
		return "", "", fmt.Errorf("it must be a JSON object, but it begins with %s", excerpt(text))
	}
	var anything json.RawMessage
	if err := json.Unmarshal([]byte(text), &anything); err != nil {
		return "", "", jsonProblem(text, err)
	}
	object, err := rawjson.ParseObject([]byte(text))
	if err != nil {
		return "", "", err
	}
	name, ok := rawjson.String(object.Get("name"))
	if !ok || strings.TrimSpace(name) == "" {
		return "", "", errors.New(`"name" is missing, or no text: it must be the name of a tool`)
	}
	args, err := callArguments(object)
	if err != nil {
		return "", "", err
	}
	return name, args, nil
}

// callArguments finds the arguments of a call, also under the names of other protocols.
func callArguments(object rawjson.Object) (string, error) {
	var args json.RawMessage
	for _, member := range object {
		switch member.Key {
		case "name":
		case "args", "arguments", "parameters":
			if args != nil {
				return "", errors.New(`the arguments are there twice: write them once, in "args"`)
			}
			args = member.Value
		default:
			return "", fmt.Errorf(`the object has "name" and "args" only, but here it has %q: arguments belong into "args"`, member.Key)
		}
	}
	switch {
	case args == nil:
		return "{}", nil
	case !isObject(args):
		return "", fmt.Errorf(`"args" must be a JSON object, but it is %s`, excerpt(string(args)))
	}
	return string(args), nil
}

// jsonProblem says where a text stops being valid JSON, and names a frequent cause.
func jsonProblem(text string, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	at := int(min(max(syntax.Offset-1, 0), int64(len(text))))
	character := utf8.RuneCountInString(text[:at]) + 1
	switch {
	case int(syntax.Offset) >= len(text) && strings.Contains(syntax.Error(), "unexpected end"):
		return errors.New("the JSON object has no end: a quotation mark or a brace is missing")
	case strings.Contains(syntax.Error(), "in string literal"):
		return fmt.Errorf(`it is no JSON at character %d: %w; in a text, write a line end as \n and a tab as \t`, character, err)
	}
	return fmt.Errorf("it is no JSON at character %d, before %s: %w", character, excerpt(text[at:]), err)
}

// excerpt returns the beginning of a text, in quotation marks.
func excerpt(text string) string {
	const most = 40
	if utf8.RuneCountInString(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q…", string([]rune(text)[:most]))
}
