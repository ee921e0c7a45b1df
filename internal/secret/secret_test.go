package secret_test

import (
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/secret"
)

func TestKeysAreRemovedByTheirForm(t *testing.T) {
	for name, test := range map[string]struct{ text, key string }{
		"OpenAI":           {"Internal: api key sk-abcdef0123456789ABCDEF invalid", "sk-abcdef0123456789ABCDEF"},
		"OpenAI's project": {"key sk-proj-abc_def-0123456789", "abc_def-0123456789"},
		"Anthropic":        {"sk-ant-api03-AAAABBBBCCCCDDDD", "AAAABBBB"},
		"GitHub":           {"cloning with ghp_0123456789abcdefABCDEF0123456789abcd failed", "ghp_0123"},
		"Slack":            {"xoxb-1234567890-abcdefghij", "1234567890"},
		"AWS":              {"AKIAIOSFODNN7EXAMPLE is disabled", "IOSFODNN7"},
		"Telegram":         {"https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/x", "AAHdqTcv"},
		"bearer":           {"Authorization: Bearer abcDEF123.456-xyz", "abcDEF123"},
		"address":          {"postgres://me:hunter2hunter@db/x", "hunter2hunter"},
		"assignment":       {`{"api_key": "0123456789abcdef"}`, "0123456789abcdef"},
		"query":            {"GET /v1?access_token=0123456789abcdef&x=1", "0123456789abcdef"},
		"password":         {"password=correct-horse-battery", "correct-horse"},
		"JWT":              {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIi"},
		"PEM":              {"-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----\nrest", "MIIEabc"},
		"PEM that is cut":  {"-----BEGIN PRIVATE KEY-----\nMIIEabc", "MIIEabc"},
	} {
		got := secret.Text(test.text)
		if strings.Contains(got, test.key) || !strings.Contains(got, secret.Mark) {
			t.Errorf("%s: %q became %q", name, test.text, got)
		}
		if again := secret.Text(got); again != got {
			t.Errorf("%s: %q became %q", name, got, again)
		}
	}
}

func TestOrdinaryWordsStay(t *testing.T) {
	for _, text := range []string{
		"the token limit is 4096", "bad gateway (502): upstream said no", "unknown key: sk-1", "turn_0199c5f0d1a27000 conv_0199c5f0d1a27000b8f7",
		"password: short", "max_tokens: 12", "http://127.0.0.1:8787/v1", "a basic idea", "bearer of bad news", "12:30:45", "",
	} {
		if got := secret.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestValuesOfTheEnvironmentAreRemoved(t *testing.T) {
	r := secret.FromEnv([]string{
		"CREW_BOT_TOKEN=plain words here", "DB_PASSWORD=plain words here too", "PATH=/usr/bin:/bin", "EMPTY_TOKEN=", "PIN_SECRET=1234", "KEYBOARD=querty-layout",
	})
	want := "/usr/bin:/bin querty-layout 1234 [redacted], [redacted]."
	if got := r.Text("/usr/bin:/bin querty-layout 1234 plain words here too, plain words here."); got != want {
		t.Errorf("got %q", got)
	}
	if got := (*secret.Redactor)(nil).Text("Bearer abcdefgh1234"); got != "Bearer [redacted]" {
		t.Errorf("without values: %q", got)
	}
}
