package inspector

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// get asks a handler for a path.
func get(t *testing.T, handler http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Result()
}

func bodyOf(t *testing.T, answer *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var bundle = fstest.MapFS{
	"index.html":             {Data: []byte("<title>page</title>")},
	"favicon.svg":            {Data: []byte("<svg/>")},
	"assets/index-1a2b3c.js": {Data: bytes.Repeat([]byte("const answer = 42;\n"), 100)},
	"assets/font-1.woff2":    {Data: []byte("wOF2")},
}

func TestFiles(t *testing.T) {
	page, err := newInspector(bundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, mediaType, cache, content string }{
		{"/", "text/html; charset=utf-8", "no-cache", "<title>page</title>"},
		{"/conversations/conv_1", "text/html; charset=utf-8", "no-cache", "<title>page</title>"},
		{"/favicon.svg", "image/svg+xml", "no-cache", "<svg/>"},
		{"/assets/index-1a2b3c.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", strings.Repeat("const answer = 42;\n", 100)},
		{"/assets/font-1.woff2", "font/woff2", "public, max-age=31536000, immutable", "wOF2"},
	} {
		answer := get(t, page, test.path)
		if header := answer.Header; header.Get("Content-Type") != test.mediaType || header.Get("Cache-Control") != test.cache {
			t.Errorf("%s: %v", test.path, header)
		}
		if body := bodyOf(t, answer); answer.StatusCode != 200 || body != test.content {
			t.Errorf("%s: status %d: %q", test.path, answer.StatusCode, body)
		}
		again := get(t, page, test.path, "If-None-Match", `"x", `+answer.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified || bodyOf(t, again) != "" {
			t.Errorf("%s with its ETag: status %d", test.path, again.StatusCode)
		}
	}
	if answer := get(t, page, "/assets/index-gone.js"); answer.StatusCode != 404 || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a file of another version: status %d, %v", answer.StatusCode, answer.Header)
	}
}

func TestCompression(t *testing.T) {
	page, err := newInspector(bundle)
	if err != nil {
		t.Fatal(err)
	}
	const script = "/assets/index-1a2b3c.js"
	plain := bodyOf(t, get(t, page, script))
	for encodings, zipped := range map[string]bool{"": false, "br": false, "gzip, br": true, "br;q=1.0, gzip;q=0.5": true, "gzip;q=0": false, "gzip;q=0.0": false} {
		answer := get(t, page, script, "Accept-Encoding", encodings)
		if answer.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: Vary is %q", encodings, answer.Header.Get("Vary"))
		}
		if got := answer.Header.Get("Content-Encoding") == "gzip"; got != zipped {
			t.Errorf("%q: compressed is %v", encodings, got)
		}
		if !zipped {
			continue
		}
		reader, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(reader); err != nil || string(data) != plain {
			t.Errorf("%q: %v, %d bytes", encodings, err, len(data))
		}
	}
	if answer := get(t, page, "/assets/font-1.woff2", "Accept-Encoding", "gzip"); answer.Header.Get("Content-Encoding") != "" {
		t.Error("a compressed font is compressed again")
	}
}

func TestSecurityHeaders(t *testing.T) {
	page, err := newInspector(bundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/runs", "/assets/index-1a2b3c.js"} {
		header := get(t, page, path).Header
		policy := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'; ") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %q admits too much", path, policy)
		}
		for name := range securityHeaders {
			if header.Get(name) == "" {
				t.Errorf("%s: no %s", path, name)
			}
		}
	}
}

func TestWithoutBundle(t *testing.T) {
	page, err := newInspector(fstest.MapFS{".gitkeep": {}})
	if err != nil {
		t.Fatal(err)
	}
	if body := bodyOf(t, get(t, page, "/")); !strings.Contains(body, "npm run build") {
		t.Errorf("the page does not say how it is built:\n%s", body)
	}
}

// The embedded page works under its own policy: every file that it names is there, and nothing is inline.
func TestEmbeddedPage(t *testing.T) {
	page, err := New()
	if err != nil {
		t.Fatal(err)
	}
	index := string(page.files[indexFile].data)
	for _, inline := range []string{`<script(\s[^>]*)?>\s*[^<\s]`, `<style`, `\sstyle=`, `\son[a-z]+=`} {
		if found := regexp.MustCompile(inline).FindString(index); found != "" {
			t.Errorf("index.html has %q, which its policy forbids", found)
		}
	}
	for _, named := range regexp.MustCompile(`(?:src|href)="(?:\./|/)?([^"#]+)"`).FindAllStringSubmatch(index, -1) {
		if name := named[1]; page.files[name] == nil && name != "openapi.json" {
			t.Errorf("index.html names %s, which is not in the bundle", name)
		}
	}
}
