package interchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// idFields are the fields in which a source names its conversation, the most telling first.
var idFields = []string{"session_id", "conversation_id", "id"}

var (
	keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`)
	notInKeys  = regexp.MustCompile(`[^A-Za-z0-9._:@-]+`)
	chatFile   = regexp.MustCompile(`^chat_(-?[0-9]+)\.json(\.gz)?$`)
)

// identify gives the conversation the key that its source names: the pipeline's chat goes on in the Telegram chat of its
// file's name, any other source by its id. A source without an id gives no key.
func (s *source) identify(format string) string {
	if match := chatFile.FindStringSubmatch(filepath.Base(s.file)); match != nil && (format == FormatPipeline || s.id() == "") {
		return "telegram:" + match[1]
	}
	return keyFrom(s.id())
}

// id is what the source calls its conversation, "" for nothing.
func (s *source) id() string {
	for _, name := range idFields {
		value := s.fields.Get(name)
		if text, ok := rawjson.String(value); ok && text != "" {
			return text
		}
		if number := json.Number(bytes.TrimSpace(value)); len(number) > 0 && kind(value) == "a number" {
			return number.String()
		}
	}
	return s.name
}

// keyFrom makes a key of an id. Two ids never give one key: what cannot stand in a key is replaced, and a hash added.
func keyFrom(id string) string {
	if id == "" || keyPattern.MatchString(id) && !strings.HasPrefix(id, "conv_") {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	readable := strings.Trim(notInKeys.ReplaceAllString(strings.TrimPrefix(id, "conv_"), "-"), "-._:@")
	key := fmt.Sprintf("%.100s-%s", readable, hex.EncodeToString(sum[:6]))
	if readable == "" {
		key = "import-" + hex.EncodeToString(sum[:12])
	}
	return key
}

// Origin says in a conversation's metadata which messages of its source it holds: so a later import of the same source
// can tell that nothing changed, or that more came.
type Origin struct {
	Messages int    `json:"messages"`
	SHA256   string `json:"sha256"`
	LastSeq  int64  `json:"last_seq"` // of the newest entry that was imported
}

// originKey is the member of the metadata that holds an Origin.
const originKey = "imported"

// OriginOf reads what an import noted; ok is false for a conversation that was not imported.
func OriginOf(metadata json.RawMessage) (o Origin, ok bool) {
	object, err := rawjson.ParseObject(metadata)
	if err != nil || object.Get(originKey) == nil {
		return o, false
	}
	return o, json.Unmarshal(object.Get(originKey), &o) == nil && o.SHA256 != ""
}

// WithOrigin notes which messages a conversation holds.
func WithOrigin(metadata json.RawMessage, o Origin) json.RawMessage {
	object, _ := rawjson.ParseObject(metadata)
	object.Set(originKey, rawjson.MustMarshal(o))
	return object.Raw()
}

// Messages is how many messages the source has.
func (d *Document) Messages() int { return len(d.raw) }

// Digest is the SHA-256 of the first messages of the source, white space aside.
func (d *Document) Digest(messages int) string {
	hash := sha256.New()
	for _, raw := range d.raw[:messages] {
		var compact bytes.Buffer
		if json.Compact(&compact, raw) != nil {
			compact.Write(raw)
		}
		compact.WriteByte('\n')
		hash.Write(compact.Bytes())
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// After returns the entries of the messages from a place on, counted from 0.
func (d *Document) After(messages int) []continuo.Entry {
	for i := range d.Entries {
		if record, ok := recordOf(&d.Entries[i]); d.Format != FormatContinuo && ok && record.Index >= messages {
			return d.Entries[i:]
		}
		if d.Format == FormatContinuo && i == messages {
			return d.Entries[i:]
		}
	}
	return nil
}
