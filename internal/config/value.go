package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	durations "github.com/continuo-log/continuo/internal/duration"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// value is a typed variable of a Config: how a text is parsed into it and formatted again.
type value struct {
	allowed string          // completes "allowed: …"
	takes   []yamltree.Kind // the kinds of YAML value that are accepted
	set     func(text string) error
	setList func(items []string) error // for lists, instead of set
	names   bool                       // the items of the list have no brackets
	mapping *mapping                   // for mappings, instead of set
	// node is the text for set of a mapping of any values; nil where there is none.
	node   func(*yamltree.Node) (string, error)
	schema map[string]any // what the JSON Schema says besides the type; nil for nothing
	show   func() string
	// hidden says that errors do not repeat the given value: people may paste secrets there.
	hidden bool
}

// errNotAllowed says that a text does not match value.allowed. Any other error explains itself.
var errNotAllowed = errors.New("not allowed")

// maxWhole bounds every integer without a tag max, so that sums of them do not overflow.
const maxWhole = math.MaxInt32

// value is the variable that target points to, with the bounds that its tag gives; binder lists the tags.
func (b binder) value(target any, tag reflect.StructTag) value {
	var v value
	switch target := target.(type) {
	case *int:
		v = whole(target, tag)
	case *int64:
		v = whole(target, tag)
	case *float64:
		v = number(func(f float64) { *target = f }, func() *float64 { return target }, tag)
	case **float64:
		v = number(func(f float64) { *target = &f }, func() *float64 { return *target }, tag)
	case *bool:
		v = boolean(target)
	case *time.Duration:
		v = duration(target, tag)
	case *slog.Level:
		v = logLevel(target)
	case *string:
		v = b.text(target, tag)
	case **int64:
		least, most := wholeTag(tag, "min", 0), wholeTag(tag, "max", maxWhole)
		v = value{
			allowed: "a whole number", takes: []yamltree.Kind{yamltree.Whole},
			set: func(text string) error {
				number, err := strconv.ParseInt(text, 10, 64)
				if err != nil || number < least || number > most {
					return errNotAllowed
				}
				*target = &number
				return nil
			},
			show: func() string {
				if *target == nil {
					return ""
				}
				return strconv.FormatInt(**target, 10)
			},
		}
	case *json.RawMessage:
		v = object(target)
	case *[]string:
		v = b.list(target, tag.Get("kind"))
	case *map[string]string:
		v = mappings(target, tag.Get("kind"))
	default:
		panic(fmt.Sprintf("config: no setting can be a %T", target))
	}
	v.allowed = cmp.Or(tag.Get("allowed"), v.allowed)
	if meaning, ok := tag.Lookup("empty"); ok {
		v.allowed += `, or "" ` + meaning
	}
	return v
}

// whole is an integer from min to max, in plain decimal digits.
func whole[T int | int64](target *T, tag reflect.StructTag) value {
	least, most := wholeTag(tag, "min", 0), wholeTag(tag, "max", maxWhole)
	return value{
		allowed: fmt.Sprintf("a whole number from %d to %d", least, most), schema: map[string]any{"minimum": least, "maximum": most},
		takes: []yamltree.Kind{yamltree.Whole},
		set: func(text string) error {
			number, err := strconv.ParseInt(text, 10, 64)
			if err != nil || number < least || number > most || strconv.FormatInt(number, 10) != text {
				return errNotAllowed
			}
			*target = T(number)
			return nil
		},
		show: func() string { return strconv.FormatInt(int64(*target), 10) },
	}
}

func wholeTag(tag reflect.StructTag, name string, otherwise int64) int64 {
	text, ok := tag.Lookup(name)
	if !ok {
		return otherwise
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("config: the tag %s: %v", name, err))
	}
	return number
}

// number is a number from 0, or above 0 with the tag above, to max. get returns nil while none was given.
func number(set func(float64), get func() *float64, tag reflect.StructTag) value {
	most := float64(wholeTag(tag, "max", maxWhole))
	_, above := tag.Lookup("above")
	allowed, schema := "a number from 0 to "+tag.Get("max"), map[string]any{"minimum": 0, "maximum": most}
	if above {
		schema = map[string]any{"exclusiveMinimum": 0, "maximum": most}
		allowed = "a number above 0, at most " + tag.Get("max")
	}
	return value{
		allowed: allowed, schema: schema,
		takes: []yamltree.Kind{yamltree.Whole, yamltree.Number},
		set: func(text string) error {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || !(number >= 0 && number <= most) || above && number == 0 {
				return errNotAllowed
			}
			set(number)
			return nil
		},
		show: func() string {
			if get() == nil {
				return ""
			}
			return strconv.FormatFloat(*get(), 'g', -1, 64)
		},
	}
}

func boolean(target *bool) value {
	return value{
		allowed: "true or false",
		takes:   []yamltree.Kind{yamltree.Bool},
		set: func(text string) error {
			if text != "true" && text != "false" {
				return errNotAllowed
			}
			*target = text == "true"
			return nil
		},
		show: func() string { return strconv.FormatBool(*target) },
	}
}

// duration is a duration of at least min, by default a millisecond, as internal/duration reads it; with the tag
// zero it may be 0s. One without a default is shown only if it was given.
func duration(target *time.Duration, tag reflect.StructTag) value {
	least, err := time.ParseDuration(cmp.Or(tag.Get("min"), "1ms"))
	if err != nil {
		panic(fmt.Sprintf("config: the tag min: %v", err))
	}
	_, mayBeZero := tag.Lookup("zero")
	_, optional := tag.Lookup("unset")
	v := value{
		allowed: "a time of at least " + durationText(least) + " with its unit, such as 90s, 10m, 1h30m, 7d or 2w",
		schema:  map[string]any{"pattern": durationPattern},
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			length, err := durations.Parse(text)
			if err != nil || length < least && !(mayBeZero && length == 0) {
				return errNotAllowed
			}
			*target = length
			return nil
		},
		show: func() string {
			if optional && *target == 0 {
				return ""
			}
			return durationText(*target)
		},
	}
	if mayBeZero {
		v.allowed += ", or 0s"
	}
	return v
}

// durationPattern is what the JSON Schema says of durations.
const durationPattern = `^([0-9]+(\.[0-9]+)?w)?([0-9]+(\.[0-9]+)?d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`

// durationText is Duration.String without the zero units at its end, 10m and not 10m0s, and in days from two days on.
func durationText(length time.Duration) string {
	if length >= 2*durations.Day && length%durations.Day == 0 {
		return strconv.Itoa(int(length/durations.Day)) + "d"
	}
	text := length.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func logLevel(target *slog.Level) value {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	return value{
		allowed: "debug, info, warn or error", schema: map[string]any{"enum": []string{"debug", "info", "warn", "error"}},
		takes: []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			level, ok := levels[text]
			if !ok {
				return errNotAllowed
			}
			*target = level
			return nil
		},
		show: func() string { return strings.ToLower(target.String()) },
	}
}
