package config

import "testing"

func TestOrigins(t *testing.T) {
	for _, origin := range []string{"https://app.example", "http://localhost:5173", "http://127.0.0.1:80" + "00", "https://[::1]:8443"} {
		if !areOrigins([]string{origin}) {
			t.Errorf("%s is refused", origin)
		}
	}
	for _, text := range []string{
		"*", "null", "", "app.example", "https://", "https://*.example", "https://app.example/", "https://app.example/x", "https://APP.example",
		"https://app.example:443", "http://app.example:80", "https://app.example:", "https://user@app.example", "https://app.example?x", "https://app.example#x", "ftp://app.example",
		"https://a.example https://b.example",
	} {
		if areOrigins([]string{text}) {
			t.Errorf("%q is accepted", text)
		}
	}
	if areOrigins([]string{"https://app.example", "https://app.example"}) {
		t.Error("the same origin twice is accepted")
	}
}
