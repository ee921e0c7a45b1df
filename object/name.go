package object

import (
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

const (
	maxName = 512 // bytes; with a prefix as long, it is within the 1024 of S3
	maxPart = 200 // bytes; file systems allow 255
)

// checkName refuses names that could lead out of a folder, or that some store cannot keep.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%w: the name of an object has at most %d bytes, this one %d", continuo.ErrInvalid, maxName, len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return fmt.Errorf("%w: the name of an object has parts joined by single slashes, and none is empty", continuo.ErrInvalid)
		case part == "." || part == "..":
			return fmt.Errorf("%w: no part of an object's name is %q", continuo.ErrInvalid, part)
		case len(part) > maxPart:
			return fmt.Errorf("%w: a part of an object's name has at most %d bytes, this one has one of %d", continuo.ErrInvalid, maxPart, len(part))
		case strings.ContainsFunc(part, odd):
			return fmt.Errorf("%w: the name of an object consists of A-Z a-z 0-9 . _ - and slashes", continuo.ErrInvalid)
		}
	}
	return nil
}

// checkPrefix refuses prefixes that no name can begin with.
func checkPrefix(prefix string) error {
	whole, last := "", prefix
	if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
		whole, last = prefix[:slash], prefix[slash+1:]
		if err := checkName(whole); err != nil {
			return err
		}
	}
	if len(prefix) > maxName || strings.ContainsFunc(last, odd) {
		return fmt.Errorf("%w: the name of an object consists of at most %d A-Z a-z 0-9 . _ - and slashes", continuo.ErrInvalid, maxName)
	}
	return nil
}

func odd(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
}
