package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
)

// secretPrefix is what the secrets of Standard Webhooks begin with: the rest is base64.
const secretPrefix = "whsec_"

// Sign is the signature of a message in the form of Standard Webhooks: HMAC-SHA256 of the id, the time in Unix seconds and
// the body. A secret that begins with whsec_ is decoded from base64; any other one is used as it is.
func Sign(secret, id, timestamp string, body []byte) string {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			key = decoded
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// withoutURL removes the address from an error of a client: it may have a credential.
func withoutURL(err error) error {
	if failed := new(url.Error); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
