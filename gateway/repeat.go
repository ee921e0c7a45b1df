package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// retryHeader is how often the client's library has sent a request before; those of OpenAI and Anthropic send it.
const retryHeader = "X-Stainless-Retry-Count"

// repeatOf says how a request is recognised when it is sent again: by its key, or by its body where the client's library says
// that it repeats it.
func repeatOf(r *http.Request, body []byte) (engine.Repeat, error) {
	key, err := api.IdempotencyKeyOf(r.Header)
	if err != nil {
		return engine.Repeat{}, err
	}
	repeat := engine.Repeat{Key: string(key)}
	count, err := strconv.Atoi(r.Header.Get(retryHeader))
	if err != nil && repeat.Key == "" {
		return repeat, nil
	}
	sum := sha256.Sum256(body)
	repeat.Fingerprint, repeat.Again = hex.EncodeToString(sum[:]), count > 0
	return repeat, nil
}
