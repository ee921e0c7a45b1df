// Package inspector serves the inspector, the web page on which people see what their agents said and what each model
// was shown.
//
// The page is a bundle of static files in the folder dist, which is built from the folder web of the source, committed,
// and embedded into the program. It reads everything from the public HTTP API, so that this package knows no
// conversations. Names of files below assets contain a hash of their content and never change; every other file is
// validated again at each load. The page decides itself what it shows at one of its paths, so all of them have index.html.
//
// Pitfall: the Content-Security-Policy allows no inline script and no inline style. A bundle that needs one does not
// work; a test checks index.html for both.
package inspector

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// paths are the first elements of the page's paths.
var paths = []string{
	"compare", "connect", "conversations", "crews", "health", "login", "memory", "runs", "search", "settings", "tasks",
}

const (
	indexFile = "index.html"
	assets    = "assets/"
)

// Inspector serves the page. It is safe for concurrent use.
type Inspector struct {
	files map[string]*file // by their paths in the bundle; index.html is always there
}

// New makes the handler of the embedded page.
func New() (*Inspector, error) {
	bundle, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, fmt.Errorf("read the inspector's files: %w", err)
	}
	return newInspector(bundle)
}

func newInspector(bundle fs.FS) (*Inspector, error) {
	i := &Inspector{files: map[string]*file{}}
	err := fs.WalkDir(bundle, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		data, err := fs.ReadFile(bundle, name)
		if err == nil {
			i.files[name] = newFile(name, data)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the inspector's files: %w", err)
	}
	if i.files[indexFile] == nil {
		i.files[indexFile] = newFile(indexFile, []byte(notBuilt))
	}
	return i, nil
}

// notBuilt is the page of a program that was built without the bundle.
const notBuilt = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Continuo</title></head><body><main>
<h1>The inspector is not in this program</h1>
<p>The program was built without the folder <code>inspector/dist</code>. The API is there: see
<a href="/openapi.json">openapi.json</a>. To build the page, run <code>npm ci &amp;&amp; npm run build</code> in the
folder <code>web</code> of the source, and build the program again.</p>
</main></body></html>
`

// Patterns are the patterns of http.ServeMux that the page answers, besides the root.
func (i *Inspector) Patterns() []string {
	patterns := []string{"GET /" + assets}
	for _, name := range paths {
		patterns = append(patterns, "GET /"+name, "GET /"+name+"/{rest...}")
	}
	for name := range i.files {
		if name != indexFile && !strings.HasPrefix(name, assets) {
			patterns = append(patterns, "GET /"+name)
		}
	}
	slices.Sort(patterns)
	return patterns
}

// ServeHTTP answers a request with a file of the page, or with index.html for one of the page's paths.
func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	found := i.files[name]
	switch {
	case found != nil:
	case strings.HasPrefix(name, assets):
		w.Header().Set("Cache-Control", "no-store") // an older or newer program may have it
		http.Error(w, "this version of the page has no such file: load the page again", http.StatusNotFound)
		return
	default:
		found = i.files[indexFile]
	}
	for header, value := range securityHeaders {
		w.Header().Set(header, value)
	}
	found.serve(w, r)
}

// securityHeaders are those of every file of the page. Images are those of the conversations, which the page makes of
// data that it has read.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
		"media-src data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// file is one file of the bundle.
type file struct {
	data      []byte
	mediaType string
	cache     string
	etag      string
	zipped    func() []byte // compressed, at the first use; nil where that gains nothing
}

func newFile(name string, data []byte) *file {
	sum := sha256.Sum256(data)
	f := &file{
		data: data, mediaType: mediaTypeOf(name), cache: "no-cache",
		etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, // weak: two encodings have it
	}
	if strings.HasPrefix(name, assets) {
		f.cache = "public, max-age=31536000, immutable"
	}
	if isText(f.mediaType) {
		f.zipped = sync.OnceValue(func() []byte { return compress(data) })
	}
	return f
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", f.cache)
	header.Set("ETag", f.etag)
	header.Add("Vary", "Accept-Encoding")
	if slices.Contains(listed(r.Header.Get("If-None-Match")), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.data
	if f.zipped != nil && slices.Contains(listed(r.Header.Get("Accept-Encoding")), "gzip") {
		header.Set("Content-Encoding", "gzip")
		body = f.zipped()
	}
	header.Set("Content-Type", f.mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that has disconnected is not an error
	}
}

// listed are the items of a header's list. An item with a weight of 0 is left out: it is not wanted.
func listed(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		name, weight, _ := strings.Cut(item, ";")
		if weight = strings.ReplaceAll(weight, " ", ""); strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == "" {
			items = append(items, strings.TrimSpace(name))
		}
	}
	return items
}

func compress(data []byte) []byte {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = w.Write(data) // a buffer takes everything
	_ = w.Close()
	return zipped.Bytes()
}

// mediaTypeOf determines a file's type by its name, the same on every machine.
func mediaTypeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	}
	return "application/octet-stream"
}

func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "json") || mediaType == "image/svg+xml"
}
