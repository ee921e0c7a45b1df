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
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// idFields are the fields in which a source names its conversation, the most specific first.
var idFields = []string{"session_id", "conversation_id", "id"}

var (
	keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`)
	notInKeys  = regexp.MustCompile(`[^A-Za-z0-9._:@-]+`)
	chatFile   = regexp.MustCompile(`^chat_(-?[0-9]+)\.json(\.gz)?$`)
)

// identify derives the conversation's key from the source: the pipeline's chat continues in the Telegram chat
// of its file's name, any other source has the key of its id. A source without an id gets no key.
func (s *source) identify(format string) string {
	if match := chatFile.FindStringSubmatch(filepath.Base(s.file)); match != nil && (format == FormatPipeline || s.id() == "") {
		return "telegram:" + match[1]
	}
	return keyFrom(s.id())
}

// id returns the source's id of its conversation, "" for none.
func (s *source) id() string {
	for _, name := range idFields {
		value := s.fields.Get(name)
		if text, ok := rawjson.String(value); ok && text != "" {
			return text
		}
		if number := json.Number(bytes.TrimSpace(value)); len(number) > 0 && messages.Kind(value) == "a number" {
			return number.String()
		}
	}
	return s.name
}

// keyFrom makes a key of an id. Two ids never give the same key: characters that a key cannot have are
// replaced, and a hash is added.
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

// Origin records in a conversation's metadata which messages of its source were imported, so that a later
// import of the same source detects new messages.
type Origin struct {
	Messages int    `json:"messages"`
	SHA256   string `json:"sha256"`
	LastSeq  int64  `json:"last_seq"` // of the newest entry that was imported
}

// originKey is the member of the metadata that holds an Origin.
const originKey = "imported"

// OriginOf reads the Origin of a conversation; ok is false for one that was not imported.
func OriginOf(metadata json.RawMessage) (o Origin, ok bool) {
	object, err := rawjson.ParseObject(metadata)
	if err != nil || object.Get(originKey) == nil {
		return o, false
	}
	return o, json.Unmarshal(object.Get(originKey), &o) == nil && o.SHA256 != ""
}

// WithOrigin adds an Origin to metadata.
func WithOrigin(metadata json.RawMessage, o Origin) json.RawMessage {
	object, _ := rawjson.ParseObject(metadata)
	object.Set(originKey, rawjson.MustMarshal(o))
	return object.Raw()
}

// Messages returns the number of messages in the source.
func (d *Document) Messages() int { return len(d.raw) }

// Digest returns the SHA-256 of the first messages of the source, without white space.
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

// After returns the entries of the messages from an index on, counted from 0.
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
