package object

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

const s3Bucket = "continuo-test"

// fakeS3 is an S3-compatible service of others on the loopback address. It does not check signatures.
type fakeS3 struct {
	server  *httptest.Server
	backend *s3mem.Backend

	mu       sync.Mutex
	requests []string // "METHOD path?query" as they came
	// answer, if it is not nil, may answer in the place of the service.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func startS3(t *testing.T) *fakeS3 {
	t.Helper()
	useCredentials(t)
	f := &fakeS3{backend: s3mem.New()}
	if err := f.backend.CreateBucket(s3Bucket); err != nil {
		t.Fatal(err)
	}
	service := gofakes3.New(f.backend).Server()
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
		answer := f.answer
		f.mu.Unlock()
		if answer == nil || !answer(w, r) {
			service.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.server.Close)
	return f
}

// useCredentials sets some, and ignores those of the person who runs the tests.
func useCredentials(t *testing.T) {
	t.Helper()
	none := t.TempDir()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_CA_BUNDLE": "",
		"AWS_CONFIG_FILE": none + "/config", "AWS_SHARED_CREDENTIALS_FILE": none + "/credentials",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
}

func (f *fakeS3) location(prefix string) string { return s3At(f.server.URL, prefix) }

func s3At(endpoint, prefix string) string {
	return "s3://" + s3Bucket + "?" + url.Values{"endpoint": {endpoint}, "prefix": {prefix}}.Encode()
}

func (f *fakeS3) answerWith(answer func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// refuse answers each request with an error of S3.
func (f *fakeS3) refuse(status int, code string) {
	f.answerWith(func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>said by the test</Message></Error>`, code)
		}
		return true
	})
}

func (f *fakeS3) count(beginning string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, request := range f.requests {
		if strings.HasPrefix(request, beginning) {
			n++
		}
	}
	return n
}

// uploads tells which uploads in parts have begun and not ended.
func (f *fakeS3) uploads(t *testing.T) string {
	t.Helper()
	response, err := http.Get(f.server.URL + "/" + s3Bucket + "?uploads")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("list uploads: %s %v %s", response.Status, err, body)
	}
	return string(body)
}

const s3Child = "CONTINUO_TEST_S3_SERVER"

// serveS3 is the process that serves S3 until its input ends.
func serveS3() {
	backend := s3mem.New()
	if err := backend.CreateBucket(s3Bucket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startS3Process starts one and returns the location of its bucket.
func startS3Process(t *testing.T) string {
	t.Helper()
	useCredentials(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), s3Child+"=1")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait()
	})
	endpoint, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return s3At(strings.TrimSpace(endpoint), "")
}
