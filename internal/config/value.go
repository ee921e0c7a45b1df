package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// value is a typed variable of a Config: how a text is parsed into it and formatted again.
type value struct {
	allowed string          // completes "allowed: …"
	takes   []yamltree.Kind // the kinds of YAML value that are accepted
	set     func(text string) error
	setList func(items []string) error // for lists, instead of set
	show    func() string
	// hidden says that errors do not repeat the given value: people may paste secrets there.
	hidden bool
}

// errNotAllowed says that a text does not match value.allowed. Any other error explains itself.
var errNotAllowed = errors.New("not allowed")

// maxWhole bounds every integer, so that sums of them do not overflow.
const maxWhole = math.MaxInt32

// whole is an integer of at least least, in plain decimal digits.
func whole[T int | int64](place *T, least int) value { return between(place, least, maxWhole) }

// between is an integer of at least least and at most most, in plain decimal digits.
func between[T int | int64](place *T, least, most int) value {
	return value{
		allowed: fmt.Sprintf("a whole number from %d to %d", least, most),
		takes:   []yamltree.Kind{yamltree.Whole},
		set: func(text string) error {
			number, err := strconv.Atoi(text)
			if err != nil || number < least || number > most || strconv.Itoa(number) != text {
				return errNotAllowed
			}
			*place = T(number)
			return nil
		},
		show: func() string { return strconv.FormatInt(int64(*place), 10) },
	}
}

// share is a number above 0 and at most 1.
func share(place *float64) value {
	return value{
		allowed: "a number above 0, at most 1",
		takes:   []yamltree.Kind{yamltree.Whole, yamltree.Number},
		set: func(text string) error {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || !(number > 0 && number <= 1) {
				return errNotAllowed
			}
			*place = number
			return nil
		},
		show: func() string { return strconv.FormatFloat(*place, 'g', -1, 64) },
	}
}

// temperature is a number from 0 to 2, or unset.
func temperature(place **float64) value {
	return value{
		allowed: "a number from 0 to 2",
		takes:   []yamltree.Kind{yamltree.Whole, yamltree.Number},
		set: func(text string) error {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || !(number >= 0 && number <= 2) {
				return errNotAllowed
			}
			*place = &number
			return nil
		},
		show: func() string {
			if *place == nil {
				return ""
			}
			return strconv.FormatFloat(**place, 'g', -1, 64)
		},
	}
}

func boolean(place *bool) value {
	return value{
		allowed: "true or false",
		takes:   []yamltree.Kind{yamltree.Bool},
		set: func(text string) error {
			if text != "true" && text != "false" {
				return errNotAllowed
			}
			*place = text == "true"
			return nil
		},
		show: func() string { return strconv.FormatBool(*place) },
	}
}

// duration is a duration of at least a millisecond, in the syntax of time.ParseDuration.
func duration(place *time.Duration) value {
	return value{
		allowed: "a time of at least 1ms with its unit, such as 90s, 10m or 1h30m",
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			length, err := time.ParseDuration(text)
			if err != nil || length < time.Millisecond {
				return errNotAllowed
			}
			*place = length
			return nil
		},
		show: func() string { return durationText(*place) },
	}
}

// optionalDuration is a duration that is shown only if it was given.
func optionalDuration(place *time.Duration) value {
	v := duration(place)
	v.show = func() string {
		if *place == 0 {
			return ""
		}
		return durationText(*place)
	}
	return v
}

// pause is a duration that may be 0.
func pause(place *time.Duration) value {
	v := duration(place)
	some := v.set
	v.allowed += ", or 0s"
	v.set = func(text string) error {
		if text == "0s" {
			*place = 0
			return nil
		}
		return some(text)
	}
	return v
}

// durationText is Duration.String without the zero units at its end: 10m, not 10m0s.
func durationText(length time.Duration) string {
	text := length.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// oneOf is one of a few words.
func oneOf(place *string, words ...string) value {
	allowed := words[len(words)-1]
	if others := words[:len(words)-1]; len(others) > 0 {
		allowed = strings.Join(others, ", ") + " or " + allowed
	}
	return value{
		allowed: allowed,
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			if !slices.Contains(words, text) {
				return errNotAllowed
			}
			*place = text
			return nil
		},
		show: func() string { return *place },
	}
}

func logLevel(place *slog.Level) value {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	return value{
		allowed: "debug, info, warn or error",
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			level, ok := levels[text]
			if !ok {
				return errNotAllowed
			}
			*place = level
			return nil
		},
		show: func() string { return strings.ToLower(place.String()) },
	}
}

// name is a text that is not empty and has no invisible characters.
func name(place *string, allowed string) value {
	return value{
		allowed: allowed,
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			if !isName(text) {
				return errNotAllowed
			}
			*place = text
			return nil
		},
		show: func() string { return *place },
	}
}

// project is a setting that names a project, as API keys name it too.
func project(place *string) value {
	v := name(place, "1 to 64 letters, digits and . _ -, beginning with a letter or digit")
	set := v.set
	v.set = func(text string) error {
		if continuo.CheckProject(text) != nil {
			return errNotAllowed
		}
		return set(text)
	}
	return v
}

// isName reports whether text is a name: visible, on one line, without spaces around it.
func isName(text string) bool {
	return text != "" && len(text) <= 200 && isLine(text) && strings.TrimSpace(text) == text
}

// isLine reports whether text is valid UTF-8 without control characters.
func isLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// patternList is a list of tool names, each once, in which "*" matches any run of characters; as one text they are
// separated by commas.
func patternList(place *[]string) value {
	return value{
		allowed: "a list of tools' names, each once, in which * stands for any characters, such as fs.* (in the environment and in flags: separated by commas)",
		takes:   []yamltree.Kind{yamltree.List},
		setList: func(items []string) error {
			for i, item := range items {
				if !isName(item) || strings.Contains(item, ",") || slices.Contains(items[:i], item) {
					return errNotAllowed
				}
			}
			*place = items
			return nil
		},
		show: func() string { return strings.Join(*place, ", ") },
	}
}

// globList is a list of patterns of file names, each once.
func globList(place *[]string) value {
	v := patternList(place)
	v.allowed = "a list of patterns of files' names, each once, such as *.key or !.env.example (in the environment and in flags: separated by commas)"
	return v
}

// path is a path of the file system; "~/" at its start is the home folder.
func path(place *string, home string, mayBeEmpty bool) value {
	v := value{allowed: "a path", takes: []yamltree.Kind{yamltree.Text}, show: func() string { return *place }}
	if mayBeEmpty {
		v.allowed = `a path, or "" for none`
	}
	v.set = func(text string) error {
		if text == "" && !mayBeEmpty || !isLine(text) {
			return errNotAllowed
		}
		if scheme, _, ok := strings.Cut(text, "://"); ok && strings.HasPrefix(scheme, "postgres") {
			return errors.New("a database is named by store.url (CONTINUO_STORE_URL), not by a path")
		}
		if rest, ok := strings.CutPrefix(text, "~/"); ok {
			if home == "" {
				return errors.New("~ cannot be followed, because HOME is not set to an absolute path: write the whole path")
			}
			text = home + "/" + rest
		}
		*place = text
		return nil
	}
	return v
}

// address is host:port to listen on.
func address(place *string) value {
	return value{
		allowed: "host:port with a port from 0 to 65535, such as 127.0.0.1:8787",
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			_, port, err := net.SplitHostPort(text)
			if err != nil || !isLine(text) || strings.Contains(text, " ") {
				return errNotAllowed
			}
			if _, err := strconv.ParseUint(port, 10, 16); err != nil {
				return errNotAllowed
			}
			*place = text
			return nil
		},
		show: func() string { return *place },
	}
}
