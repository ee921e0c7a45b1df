package match_test

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/match"
)

func TestTitle(t *testing.T) {
	for want, said := range map[string][]string{
		"Fix the bug":        {"<environment_context>\n<cwd>/x</cwd>\n</environment_context>", "Fix the bug"},
		"Hello":              {"<system-reminder>be brief</system-reminder>\nHello"},
		"<b>bold</b> please": {"<b>bold</b> please"},
		"":                   {"<context>a</context>"},
	} {
		var entries []continuo.Entry
		for _, text := range said {
			entries = append(entries, continuo.Entry{Role: continuo.User, Content: continuo.Text(text)})
		}
		if got := match.Title(entries).String(); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}
