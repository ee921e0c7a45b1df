package modeltest

import "testing"

func TestArchive(t *testing.T) {
	const text = "What it shows.\n\n-- request --\nPOST /x\n\n{}\n-- response --\ndata: -- no --section\n\n-- empty --\n"
	parsed := parseArchive([]byte(text))
	if got := string(parsed.format()); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	if got := string(parsed.get("response")); got != "data: -- no --section\n\n" {
		t.Errorf("the section is %q", got)
	}
	parsed.set("empty", []byte("full\n"))
	parsed.set("new", nil)
	if got, want := string(parsed.format()), text+"full\n-- new --\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTranscriptRefuses(t *testing.T) {
	const request = "-- request --\nPOST /x\nA: b\n\n{}\n"
	for _, text := range []string{
		"", request, request + "-- response --\n200\n", request + "-- response --\nOK\n\n", request + "-- response --\n200\nno header\n\n",
		request + "-- response --\n200\n\nabc\n-- wire --\ncut 5\n", request + "-- response --\n200\n\n-- wire --\nbend\n",
	} {
		if _, err := parseTranscript([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
