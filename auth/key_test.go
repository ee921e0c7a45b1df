package auth

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The form is a promise: scanners for lost secrets know it.
var form = regexp.MustCompile(`^ctn_[0-9a-hjkmnp-tv-z]{12}_[0-9a-hjkmnp-tv-z]{59}$`)

func TestNewKeys(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	ids, secrets := map[string]bool{}, map[string]bool{}
	for range 1000 {
		key, shown := New(now)
		id, secret, err := parse(shown)
		if err != nil || id != key.ID || !form.MatchString(shown) {
			t.Fatalf("%s of %+v: %v", shown, key, err)
		}
		if len(key.Hash) != 64 || key.Hash != hashOf(secret) || strings.Contains(shown, key.Hash) || !key.CreatedAt.Equal(now) {
			t.Fatalf("the store would get %+v of %s", key, shown)
		}
		ids[id], secrets[secret] = true, true
	}
	if len(ids) != 1000 || len(secrets) != 1000 {
		t.Errorf("%d ids and %d secrets of 1000 keys", len(ids), len(secrets))
	}
}

// What is not a whole key is told apart from an unknown one, without a store.
func TestBrokenKeys(t *testing.T) {
	_, shown := New(time.Now())
	for at := range shown { // a typing error anywhere
		other := byte('0')
		if shown[at] == other {
			other = '1'
		}
		if _, _, err := parse(shown[:at] + string(other) + shown[at+1:]); !errors.Is(err, ErrRefused) {
			t.Errorf("a typing error at %d: %v", at, err)
		}
	}
	for _, broken := range []string{
		"", "ctn_", "ctn__", "sk-1234", shown[4:], shown[:len(shown)-1], shown + "0", " " + shown, strings.ToUpper(shown),
		strings.Replace(shown[4:], "_", "-", 1), strings.Repeat("ctn_", 1000),
	} {
		_, _, err := parse(broken)
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", broken, err)
		} else if len(err.Error()) > 100 || len(broken) > 10 && strings.Contains(err.Error(), broken) {
			t.Errorf("%q is repeated: %v", broken, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	_, shown := New(time.Now())
	f.Add(shown)
	f.Add("ctn_000000000000_" + strings.Repeat("0", 59))
	f.Add("ctn_\xff_\x00")
	f.Fuzz(func(t *testing.T, shown string) {
		id, secret, err := parse(shown)
		if err == nil && Prefix+id+"_"+secret+checkOf(Prefix+id+"_"+secret) != shown {
			t.Errorf("%q became %q and %q", shown, id, secret)
		}
		if err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", shown, err)
		}
	})
}

func TestIDOf(t *testing.T) {
	key, shown := New(time.Now())
	for _, text := range []string{shown, key.ID, Prefix + key.ID} {
		if id := IDOf(text); id != key.ID {
			t.Errorf("%s names %s", text, id)
		}
	}
}
