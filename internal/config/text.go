package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// textKind is the form of a text.
type textKind struct {
	allowed string
	// read returns the text to keep, or an error; errNotAllowed where allowed says enough.
	read func(text string) (string, error)
	show func(text string) string // nil: as it is
	// pattern is what the JSON Schema says of the form; "" for nothing. It refuses nothing that read takes.
	pattern string
	// hidden says that errors do not repeat the given text.
	hidden bool
}

const urlForm = "an http or https URL with a host and without user, query and fragment, such as "

// urlPattern is what the JSON Schema says of such a URL.
const urlPattern = `^[hH][tT][tT][pP][sS]?://[^\s/?#@]+(/[^\s?#]*)?$`

// textKind is the kind that a tag names.
func (b binder) textKind(tag reflect.StructTag) textKind {
	if values, ok := tag.Lookup("enum"); ok {
		return oneOf(strings.Split(values, ","))
	}
	switch kind := tag.Get("kind"); kind {
	case "":
		return textKind{allowed: "a name on one line, without spaces around it", read: that(isName)}
	case "project":
		return textKind{
			allowed: "1 to 64 letters, digits and . _ -, beginning with a letter or digit", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
			read: that(func(text string) bool { return isName(text) && auth.CheckProject(text) == nil }),
		}
	case "address":
		return textKind{allowed: "host:port with a port from 0 to 65535, such as 127.0.0.1:8787", pattern: ":[0-9]+$", read: that(isAddress)}
	case "view":
		return b.view()
	case "window":
		return b.window()
	case "persona":
		return textKind{
			allowed: "a text that is not blank, in one line or below persona: |",
			read:    that(func(text string) bool { return checkPersona(text) == nil }),
		}
	case "path":
		return textKind{allowed: "a path", read: b.localPath}
	case "location": // of objects: a folder or a bucket, which is shown without its keys
		return textKind{allowed: "a path", hidden: true, read: b.path, show: WithoutKeys}
	default:
		return secretiveKind(kind)
	}
}

// secretiveKind are the kinds of text for which people paste secrets by mistake.
func secretiveKind(kind string) textKind {
	switch kind {
	case "database":
		return textKind{allowed: "a URL such as postgres://user@host:5432/database", hidden: true, read: databaseURL, show: WithoutPassword}
	case "base_url": // to which a path can be appended
		return textKind{allowed: urlForm + openAIURL, pattern: urlPattern, hidden: true, read: func(text string) (string, error) {
			if !isEndpoint(text) {
				return "", errNotAllowed
			}
			return strings.TrimRight(text, "/"), nil
		}}
	case "endpoint":
		return textKind{allowed: urlForm + "http://127.0.0.1:3000/mcp; a key goes into headers", pattern: urlPattern, hidden: true, read: that(isEndpoint)}
	case "webhook": // Telegram calls no other
		return textKind{
			allowed: "an https URL with a host and without user, query and fragment, such as https://bots.example.org/telegram", pattern: urlPattern, hidden: true,
			read: that(func(text string) bool { return isEndpoint(text) && strings.EqualFold(text[:len("https:")], "https:") }),
		}
	case "variable":
		return textKind{
			allowed: `the name of an environment variable in capital letters, digits and _, such as OPENAI_API_KEY, or "" to send no key; the key itself stays in the environment`,
			pattern: "^([A-Z_][A-Z0-9_]*)?$", hidden: true, read: variable,
		}
	case "secret": // ${NAME}, or the secret itself, which checkTelegram refuses in the file
		return textKind{
			allowed: `${NAME}, where NAME is a variable of the environment, or "" for none`, pattern: `^(\$\{[A-Za-z_][A-Za-z0-9_]*\})?$`, hidden: true,
			show: func(string) string { return secretSet },
			read: that(func(text string) bool {
				return isLine(text) && strings.TrimSpace(text) == text && len(text) <= maxSecretBytes
			}),
		}
	default:
		panic(fmt.Sprintf("config: no kind of text is called %q", kind))
	}
}

const maxSecretBytes = 1000

// text is a text of the kind that the tag names.
func (b binder) text(target *string, tag reflect.StructTag) value {
	kind := b.textKind(tag)
	_, mayBeEmpty := tag.Lookup("empty")
	v := value{allowed: kind.allowed, takes: []yamltree.Kind{yamltree.Text}, hidden: kind.hidden}
	switch {
	case kind.pattern != "" && mayBeEmpty:
		v.schema = map[string]any{"pattern": "^$|" + kind.pattern}
	case kind.pattern != "":
		v.schema = map[string]any{"pattern": kind.pattern}
	}
	if values, ok := tag.Lookup("enum"); ok {
		v.schema = enumSchema(strings.Split(values, ","), mayBeEmpty)
		if slices.Contains(strings.Split(values, ","), "true") {
			v.takes = append(v.takes, yamltree.Bool)
		}
	}
	v.set = func(text string) error {
		if text == "" && mayBeEmpty {
			*target = ""
			return nil
		}
		kept, err := kind.read(text)
		if err != nil {
			return err
		}
		*target = kept
		return nil
	}
	v.show = func() string {
		if kind.show == nil || *target == "" {
			return *target
		}
		return kind.show(*target)
	}
	return v
}

// that reads the texts of which ok is true, as they are.
func that(ok func(text string) bool) func(string) (string, error) {
	return func(text string) (string, error) {
		if !ok(text) {
			return "", errNotAllowed
		}
		return text, nil
	}
}

func oneOf(values []string) textKind {
	return textKind{allowed: orList(values), read: that(func(text string) bool { return slices.Contains(values, text) })}
}

// orList is a, b or c.
func orList(values []string) string {
	last := len(values) - 1
	if last == 0 {
		return values[0]
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// Values are the allowed values, where they are a few words; nil otherwise.
func (s *Setting) Values() []string {
	values := strings.Split(strings.Replace(s.Allowed, " or ", ", ", 1), ", ")
	for _, value := range values {
		if strings.ContainsFunc(value, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return nil
		}
	}
	return values
}

// isName reports whether text is a name: visible, on one line, without spaces around it.
func isName(text string) bool {
	return text != "" && len(text) <= 200 && isLine(text) && strings.TrimSpace(text) == text
}

// isLine reports whether text is valid UTF-8 without control characters.
func isLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// isAddress reports whether text is host:port to listen on.
func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil || !isLine(text) || strings.Contains(text, " ") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// isEndpoint reports whether text is an http or https URL without any part that could contain a secret.
func isEndpoint(text string) bool {
	location, err := url.Parse(text)
	return err == nil && (location.Scheme == "https" || location.Scheme == "http") && location.Hostname() != "" && isName(text) &&
		location.User == nil && !strings.ContainsAny(text, "?# ")
}

// localPath reads a path of the file system, which no URL is.
func (b binder) localPath(text string) (string, error) {
	if path, err := b.path(text); err != nil || !strings.Contains(path, "://") {
		return path, err
	}
	return "", errNotAllowed
}

// path reads a path of the file system, or the address of a bucket; "~/" at its start is the home folder.
func (b binder) path(text string) (string, error) {
	if text == "" || !isLine(text) {
		return "", errNotAllowed
	}
	if scheme, _, ok := strings.Cut(text, "://"); ok && strings.HasPrefix(scheme, "postgres") {
		return "", errors.New("a database is named by store.url (CONTINUO_STORE_URL), not by a path")
	}
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		if b.home == "" {
			return "", errors.New("~ cannot be followed, because HOME is not set to an absolute path: write the whole path")
		}
		text = b.home + "/" + rest
	}
	return text, nil
}

// variable reads the name of an environment variable. Lower-case letters are refused because many providers' keys would
// pass for names with them.
func variable(text string) (string, error) {
	if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || len(text) > 100 || text != "" && text[0] >= '0' && text[0] <= '9' {
		return "", errNotAllowed
	}
	if strings.HasPrefix(text, envPrefix) {
		return "", errors.New("variables that begin with CONTINUO_ are settings; give the key another one")
	}
	return text, nil
}

// view is the name of a view; while the names are not known, any is accepted.
// window is the kind of a setting that says who decides what a model is shown.
func (b binder) window() textKind {
	kind := b.view()
	read := kind.read
	kind.allowed = "auto, client or " + kind.allowed
	kind.read = func(text string) (string, error) {
		if text == WindowAuto || text == WindowClient {
			return text, nil
		}
		return read(text)
	}
	return kind
}

func (b binder) view() textKind {
	if len(b.views) == 0 {
		return textKind{allowed: "the name of a view", read: that(isName)}
	}
	kind := oneOf(b.views)
	kind.read = func(text string) (string, error) {
		if slices.Contains(b.views, text) {
			return text, nil
		}
		if near := nearest.Name(text, b.views); near != "" {
			return "", fmt.Errorf("there is no such view; did you mean %s?", near)
		}
		return "", errNotAllowed
	}
	return kind
}
