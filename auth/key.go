// Package auth makes API keys and checks them. A key is shown once, as ctn_ID_SECRET; the store has its id, its project
// and a hash of its secret, so that reading the store does not give anyone a usable key.
//
// ID is 12 and SECRET 59 characters of the alphabet of encoding, digits and lower-case letters without i, l, o and u.
// The secret is 256 random bits in 52 characters, and a checksum over the whole key in 7 more, so that a typing error
// is detected without a query to the store; scanners for leaked secrets find a key by its first four characters. The
// hash is a plain SHA-256 of the 52: slow or salted hashes are for passwords that people invent, and 2^256 secrets
// cannot be tried.
//
// Pitfalls: a [Checker] caches keys for a moment, so that a revoked one is refused that much later.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
)

// Prefix is what every key begins with.
const Prefix = "ctn_"

// The lengths of a key's parts, in characters of 5 bits.
const (
	idLength     = 12
	secretLength = 52
	checkLength  = 7
)

var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// ErrRefused says that a key is not valid; errors that wrap it say why, as far as the caller may know.
var ErrRefused = errors.New("the API key is not valid")

// New makes a key without a project or a name, and its full text, which is shown only this once.
func New(now time.Time) (key Key, shown string) {
	made, shown := newCredential(Prefix)
	return Key{ID: made.id, Hash: hashOf(made.secret), CreatedAt: now.UTC()}, shown
}

// credential are the parts of a key or of a session's token.
type credential struct{ id, secret string }

// newCredential makes a credential, and its full text.
func newCredential(prefix string) (made credential, shown string) {
	var random [8 + 32]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	made = credential{encoding.EncodeToString(random[:8])[:idLength], encoding.EncodeToString(random[8:])}
	begin := prefix + made.id + "_" + made.secret
	return made, begin + checkOf(begin)
}

// parse splits a complete key; its parts are not verified against the store.
func parse(shown string) (id, secret string, err error) { return parseAs(Prefix, shown) }

// parseAs splits what begins with a prefix.
func parseAs(prefix, shown string) (id, secret string, err error) {
	rest, ours := strings.CutPrefix(shown, prefix)
	if !ours {
		return "", "", fmt.Errorf("%w: keys of this server begin with %s", ErrRefused, prefix)
	}
	id, secret, _ = strings.Cut(rest, "_")
	if len(id) != idLength || len(secret) != secretLength+checkLength {
		return "", "", fmt.Errorf("%w: it is not whole", ErrRefused)
	}
	whole := len(shown) - checkLength
	if checkOf(shown[:whole]) != shown[whole:] {
		return "", "", fmt.Errorf("%w: it has a typing error", ErrRefused)
	}
	return id, secret[:secretLength], nil
}

// checkOf is the checksum (CRC-32) of a key's beginning.
func checkOf(begin string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(begin)))
	return encoding.EncodeToString(sum[:])
}

// hashOf is the hash of a secret that the store has.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// IDOf is the id of a key that is given by its id, or by its full text.
func IDOf(text string) string {
	rest, whole := strings.CutPrefix(text, Prefix)
	if !whole {
		return text
	}
	id, _, _ := strings.Cut(rest, "_")
	return id
}
