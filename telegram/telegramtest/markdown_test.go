package telegramtest

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseMarkdownV2(t *testing.T) {
	for raw, want := range map[string]struct {
		text     string
		entities []Entity
	}{
		`plain`:              {"plain", nil},
		`1\.0 \\ \*`:         {`1.0 \ *`, nil},
		`*b* _i_ __u__`:      {"b i u", []Entity{{Type: "bold", Length: 1}, {Type: "italic", Offset: 2, Length: 1}, {Type: "underline", Offset: 4, Length: 1}}},
		"😀*é*":               {"😀é", []Entity{{Type: "bold", Offset: 2, Length: 1}}},
		"`a*b\\`c`":          {"a*b`c", []Entity{{Type: "code", Length: 5}}},
		"```go\nx := 1\n```": {"x := 1\n", []Entity{{Type: "pre", Length: 7, Language: "go"}}},
		"```\ngo\n```":       {"go\n", []Entity{{Type: "pre", Length: 3}}},
		"```code```":         {"code", []Entity{{Type: "pre", Length: 4}}},
		"``":                 {"", nil},
		`[a](http://b)`:      {"a", []Entity{{Type: "text_link", Length: 1, URL: "http://b"}}},
		`[a](http://b/\))`:   {"a", []Entity{{Type: "text_link", Length: 1, URL: "http://b/)"}}},
		">a\n>*b*\nc":        {"a\nb\nc", []Entity{{Type: "bold", Offset: 2, Length: 1}, {Type: "blockquote", Length: 4}}},
		"a\n>b":              {"a\nb", []Entity{{Type: "blockquote", Offset: 2, Length: 1}}},
		`*_~||x||~_*`: {"x", []Entity{
			{Type: "spoiler", Length: 1}, {Type: "strikethrough", Length: 1}, {Type: "italic", Length: 1}, {Type: "bold", Length: 1},
		}},
		`\é`: {`\é`, nil},
	} {
		text, entities, err := ParseMarkdownV2(raw)
		if err != nil || text != want.text || !reflect.DeepEqual(entities, want.entities) {
			t.Errorf("%q is read as %q %+v, %v", raw, text, entities, err)
		}
	}
}

// Every reserved character is refused where it stands alone, and taken where it is escaped.
func TestReservedCharacters(t *testing.T) {
	if len(reserved) != 18 {
		t.Errorf("there are %d reserved characters, not Telegram's 18", len(reserved))
	}
	for _, c := range reserved {
		if _, _, err := ParseMarkdownV2("a" + string(c) + " b"); err == nil {
			t.Errorf("%q is taken as it is", c)
		}
		if text, entities, err := ParseMarkdownV2("a\\" + string(c)); err != nil || text != "a"+string(c) || entities != nil {
			t.Errorf("%q escaped is %q, %v", c, text, err)
		}
	}
}

func TestUnclosedEntities(t *testing.T) {
	for raw, name := range map[string]string{
		"é*b": "Bold entity at byte offset 2", "_i": "Italic", "__u_": "Italic", "`c\\`": "Code", "```": "Pre", "```a": "Pre", "```a ": "PreCode",
		"~s": "Strikethrough", "||s": "Spoiler", "[l": "TextUrl", ">*a\nb*": "Bold", ">```\na\n```": "Pre",
	} {
		if _, _, err := ParseMarkdownV2(raw); err == nil || !strings.Contains(err.Error(), "Can't find end of "+name) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}
