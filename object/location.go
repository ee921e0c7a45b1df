package object

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// location is where objects are stored.
type location struct {
	kind   string // folder, s3
	folder string
	s3     s3Location
}

// s3Location is a bucket and the prefix used in it.
type s3Location struct {
	bucket   string
	endpoint string // empty: Amazon's
	region   string // empty: that of the AWS settings
	prefix   string // ends with a slash, or is empty
}

// String names the location without parts that could be secret.
func (l location) String() string {
	if l.kind == "s3" {
		return "s3://" + l.s3.bucket
	}
	return l.folder
}

func (l location) open(ctx context.Context, options Options) (engine, error) {
	if l.kind == "s3" {
		return openS3(ctx, l.s3, options)
	}
	return openFolder(l.folder, options)
}

func parseLocation(text string) (location, error) {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case text == "":
		return location{}, fmt.Errorf("%w: the location is empty; name a folder", continuo.ErrInvalid)
	case !isURL:
		return location{kind: "folder", folder: text}, nil
	case scheme == "file":
		return parseFile(text)
	case scheme == "s3":
		return parseS3(text)
	}
	return location{folder: scheme + "://"}, fmt.Errorf("%w: a location is a folder, file:///FOLDER or s3://BUCKET", continuo.ErrInvalid)
}

func parseFile(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" {
		return location{folder: text}, fmt.Errorf("%w: a folder is written file:///FOLDER, with three slashes and nothing after it", continuo.ErrInvalid)
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/") // before a drive letter
	}
	return location{kind: "folder", folder: filepath.FromSlash(path)}, nil
}

var s3Settings = []string{"endpoint", "region", "prefix"}

func parseS3(text string) (location, error) {
	l := location{kind: "s3"}
	u, err := url.Parse(text)
	if err != nil {
		return l, fmt.Errorf("%w: the location is no URL", continuo.ErrInvalid) // its error would repeat it, and secrets in it
	}
	l.s3.bucket = u.Host
	query, err := url.ParseQuery(u.RawQuery)
	switch {
	case err != nil:
		return l, fmt.Errorf("%w: what follows the question mark is not of the form name=value&name=value", continuo.ErrInvalid)
	case u.User != nil:
		return l, fmt.Errorf("%w: a location holds no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws", continuo.ErrInvalid)
	case u.Host == "" || u.Port() != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return l, fmt.Errorf("%w: a bucket is written s3://BUCKET?endpoint=URL&region=NAME&prefix=TEXT", continuo.ErrInvalid)
	}
	for name, values := range query {
		if !slices.Contains(s3Settings, name) || len(values) != 1 {
			return l, fmt.Errorf("%w: %q is not one of endpoint, region and prefix, or is there twice", continuo.ErrInvalid, name)
		}
	}
	l.s3.region = query.Get("region")
	if l.s3.prefix, err = s3Prefix(query.Get("prefix")); err != nil {
		return l, err
	}
	l.s3.endpoint, err = s3Endpoint(query.Get("endpoint"))
	return l, err
}

func s3Prefix(text string) (string, error) {
	text = strings.Trim(text, "/")
	if text == "" {
		return "", nil
	}
	if err := checkName(text); err != nil {
		return "", fmt.Errorf("the prefix is made like the name of an object: %w", err)
	}
	return text + "/", nil
}

func s3Endpoint(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("%w: an endpoint is written https://HOST or http://HOST:PORT", continuo.ErrInvalid)
	}
	return text, nil
}
