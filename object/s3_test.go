package object

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func TestWhyABucketCannotBeUsedIsSaid(t *testing.T) {
	for _, test := range []struct {
		status int
		code   string
		want   string
	}{
		{404, "NoSuchBucket", "no such bucket"},
		{403, "AccessDenied", "allow them to list the bucket"},
		{403, "InvalidAccessKeyId", "check AWS_ACCESS_KEY_ID"},
		{403, "SignatureDoesNotMatch", "check AWS_ACCESS_KEY_ID"},
		{301, "PermanentRedirect", "add region=NAME"},
		{400, "AuthorizationHeaderMalformed", "add region=NAME"},
		{403, "RequestTimeTooSkewed", "clock"},
	} {
		f := startS3(t)
		f.refuse(test.status, test.code)
		_, err := Open(t.Context(), f.location(""), Options{})
		if !errors.Is(err, continuo.ErrUnavailable) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "s3://"+s3Bucket) {
			t.Errorf("%s: %v, want ErrUnavailable with %q", test.code, err, test.want)
		}
	}
}

func TestABucketThatIsMissing(t *testing.T) {
	f := startS3(t)
	b := openAt(t, f.location(""))
	if err := f.backend.ForceDeleteBucket(s3Bucket); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), f.location(""), Options{}); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("open: %v", err)
	}
	if err := b.PutObject(t.Context(), "a", strings.NewReader("x")); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("put: %v", err)
	}
	if _, err := b.ReadObject(t.Context(), "a", 0, -1); !errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	if err := b.DeleteObject(t.Context(), "a"); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("delete: %v", err)
	}
}

func TestADeleteIsOneRequest(t *testing.T) {
	f := startS3(t)
	b := openAt(t, f.location(""))
	before := f.count("")
	for range 2 { // the object is missing; deleting it is not an error
		if err := b.DeleteObject(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	}
	if n := f.count("") - before; n != 2 || f.count("DELETE ") != 2 {
		t.Errorf("%d requests for two deletes: %q", n, f.requests)
	}
}

// TestAServiceThatIgnoresRanges sends the whole object where a part of it is asked for.
func TestAServiceThatIgnoresRanges(t *testing.T) {
	f := startS3(t)
	b := openAt(t, f.location(""))
	f.answerWith(func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, "0123456789")
		return true
	})
	for _, part := range [][2]int64{{3, 4}, {0, 4}, {3, -1}, {3, math.MaxInt64}, {0, 0}} {
		body, err := b.ReadObject(t.Context(), "a", part[0], part[1])
		if err == nil {
			data, _ := io.ReadAll(body)
			_ = body.Close()
			t.Errorf("%d bytes from %d: read %q, want an error", part[1], part[0], data)
		}
	}
}

func TestWithoutCredentialsNothingIsSent(t *testing.T) {
	f := startS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := Open(t.Context(), f.location(""), Options{})
	if !errors.Is(err, continuo.ErrUnavailable) || !strings.Contains(err.Error(), "no credentials") || f.count("") != 0 {
		t.Errorf("%v, and %d requests", err, f.count(""))
	}
}

func TestAServiceThatIsNotThere(t *testing.T) {
	f := startS3(t)
	b := openAt(t, f.location(""))
	// Nobody listens on port 1. That of a server which was closed may be another program's.
	if _, err := Open(t.Context(), s3At("http://127.0.0.1:1", ""), Options{}); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("open: %v", err)
	}
	f.answerWith(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	if err := b.PutObject(t.Context(), "a", strings.NewReader("x")); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("put: %v", err)
	}
}

func TestAFullServiceIsFull(t *testing.T) {
	f := startS3(t)
	b := openAt(t, f.location(""))
	f.refuse(http.StatusInsufficientStorage, "XMinioStorageFull")
	if err := b.PutObject(t.Context(), "a", strings.NewReader("x")); !errors.Is(err, continuo.ErrFull) {
		t.Errorf("put: %v, want ErrFull", err)
	}
}

// TestNoPartsOfAFailedUploadStay looks at what the service keeps of uploads that nobody ended.
func TestNoPartsOfAFailedUploadStay(t *testing.T) {
	f := startS3(t)
	b := openAt(t, f.location(""))
	failure := errors.New("the data fails")
	data := func(fail func() error) io.Reader {
		return io.MultiReader(io.LimitReader(zeroReader{}, 20<<20), readFunc(func([]byte) (int, error) { return 0, fail() }))
	}
	if err := b.PutObject(t.Context(), "a/b", data(func() error { return failure })); !errors.Is(err, failure) {
		t.Errorf("data that fails: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	if err := b.PutObject(ctx, "a/b", data(func() error { end(); return io.EOF })); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ends: %v", err)
	}
	if begun := f.count("POST /" + s3Bucket + "/a/b?uploads"); begun != 2 {
		t.Errorf("%d uploads in parts began, want 2", begun)
	}
	if open := f.uploads(t); strings.Contains(open, "<Upload>") {
		t.Errorf("uploads were left open: %s", open)
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestAServiceThatDoesNotAnswer(t *testing.T) {
	f := startS3(t)
	options := Options{Timeout: time.Second}
	b := openInTime(t, f.location(""), options)
	f.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	})
	var calls sync.WaitGroup
	defer calls.Wait()
	for what, call := range map[string]func() error{
		"put":    func() error { return b.PutObject(t.Context(), "a", strings.NewReader("x")) },
		"delete": func() error { return b.DeleteObject(t.Context(), "a") },
		"read":   func() error { _, err := b.ReadObject(t.Context(), "a", 0, -1); return err },
		"list": func() error {
			for _, err := range b.Objects(t.Context(), "") {
				return err
			}
			return nil
		},
		"open": func() error {
			_, err := Open(t.Context(), f.location(""), options)
			return err
		},
	} {
		calls.Go(func() {
			if err := call(); !errors.Is(err, continuo.ErrUnavailable) {
				t.Errorf("%s: %v, want ErrUnavailable", what, err)
			}
		})
	}
}

// openInTime opens a bucket with a short time limit, which holds for opening, too, however busy the machine is.
func openInTime(t *testing.T, location string, options Options) *Bucket {
	t.Helper()
	for {
		b, err := Open(t.Context(), location, options)
		if err == nil {
			t.Cleanup(func() { _ = b.Close() })
			return b
		}
		if options.Timeout == 0 || !errors.Is(err, continuo.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

// TestHalfAnAnswerIsNoObject has a service that breaks off, or stops, in the middle of an object.
func TestHalfAnAnswerIsNoObject(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration
		after   func(r *http.Request)
		want    error
	}{
		{"breaks off", 0, func(*http.Request) { panic(http.ErrAbortHandler) }, io.ErrUnexpectedEOF},
		{"stops", time.Second, func(r *http.Request) { <-r.Context().Done() }, continuo.ErrUnavailable},
	} {
		f := startS3(t)
		b := openInTime(t, f.location(""), Options{Timeout: test.timeout})
		f.answerWith(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "01234")
			_ = http.NewResponseController(w).Flush()
			test.after(r)
			return true
		})
		body, err := b.ReadObject(t.Context(), "a", 0, -1)
		for test.timeout > 0 && errors.Is(err, continuo.ErrUnavailable) { // the beginning came too late on a busy machine
			body, err = b.ReadObject(t.Context(), "a", 0, -1)
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(body); string(data) != "01234" || !errors.Is(err, test.want) {
			t.Errorf("a service that %s: %q (%v), want %v", test.name, data, err, test.want)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestABucketIsSharedBelowAPrefix(t *testing.T) {
	f := startS3(t)
	ours, theirs, all := openAt(t, f.location("team/a")), openAt(t, f.location("team/b/")), openAt(t, f.location(""))
	for b, text := range map[*Bucket]string{ours: "ours", theirs: "theirs"} {
		if err := b.PutObject(t.Context(), "x/y", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	foreign := "an odd name"
	if _, err := f.backend.PutObject(s3Bucket, "team/a/"+foreign, nil, strings.NewReader(""), 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := theirs.DeleteObject(t.Context(), "x/y"); err != nil {
		t.Fatal(err)
	}
	for b, want := range map[*Bucket]string{ours: "x/y", theirs: "", all: "team/a/x/y"} {
		var found []string
		for info, err := range b.Objects(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, info.Name)
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("listed %q, want %q", got, want)
		}
	}
	if f.count("PUT /"+s3Bucket+"/team/a/x/y") != 1 {
		t.Errorf("not addressed by path: %q", f.requests)
	}
}

// The certificates that AWS_CA_BUNDLE names are trusted, as by all programs that use the SDK.
func TestCertificatesOfTheSettings(t *testing.T) {
	useCredentials(t)
	backend := s3mem.New()
	if err := backend.CreateBucket(s3Bucket); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	b := openAt(t, s3At(server.URL, ""))
	if err := b.PutObject(t.Context(), "a", strings.NewReader("x")); err != nil {
		t.Error(err)
	}
}
