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
		"Go on":              {"<session_context>\na <b>\n</session_context>\n\nGo on"},
		"":                   {"<session-context>a</session-context>"},
		"<not_closed> x":     {"<not_closed> x"},
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
