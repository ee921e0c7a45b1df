package auth_test

import (
	"errors"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
)

func TestCheckProject(t *testing.T) {
	for id, fine := range map[string]bool{
		"default": true, "acme.eu_2-x": true, "0": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "a b": false, "ä": false, "a/b": false, "..": false, "-x": false, "a\n": false, "a:b": false,
	} {
		if err := auth.CheckProject(id); fine != (err == nil) || err != nil && !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
