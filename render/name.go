package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// The lengths that providers allow, in bytes. OpenAI's for names are in its OpenAPI document, the one for
// call ids is in its error messages; 64 for Anthropic's is that of its strictest reseller.
const (
	maxName            = 64
	maxOpenAICallID    = 40
	maxAnthropicCallID = 64
)

// ToolName turns a tool's name into one that every provider accepts: letters, digits, "_" and "-", at most
// 64. Other characters become "_"; a longer name is shortened to end with a hash of the whole. Requests and
// the calls in them use this name.
func ToolName(name string) string {
	clean := cleanName(name)
	if clean == "" {
		clean = "tool"
	}
	return shorten(clean, name, maxName)
}

// speakerName turns a speaker's name into one that OpenAI accepts: runs of other characters become one "_",
// none at the ends. It is "" when nothing remains.
func speakerName(name string) string {
	if isName(name) {
		return name
	}
	kept := strings.FieldsFunc(name, func(r rune) bool { return !isNameRune(r) })
	clean := strings.Join(kept, "_")
	return clean[:min(len(clean), maxName)]
}

// isName reports whether the protocols accept a name unchanged.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) })
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func cleanName(name string) string {
	return strings.Map(func(r rune) rune {
		if isNameRune(r) {
			return r
		}
		return '_'
	}, name)
}

// shorten cuts text to limit bytes, the last of which are a hash of whole, when it is longer.
func shorten(text, whole string, limit int) string {
	if len(text) <= limit {
		return text
	}
	sum := sha256.Sum256([]byte(whole))
	hash := "_" + hex.EncodeToString(sum[:4])
	return strings.ToValidUTF8(text[:limit-len(hash)], "") + hash
}

// callIDs assigns call ids, each only once.
type callIDs struct {
	taken map[string]bool
	count map[string]int // by id: how often it was requested
}

func (c *callIDs) take(wanted string) string {
	if c.taken == nil {
		c.taken, c.count = map[string]bool{}, map[string]int{}
	}
	id := wanted
	for {
		c.count[wanted]++
		if n := c.count[wanted]; n > 1 {
			id = fmt.Sprintf("%s_%d", wanted, n)
		}
		if !c.taken[id] {
			c.taken[id] = true
			return id
		}
	}
}

// anthropicCallID replaces invalid characters of an id. It leaves room for the number that makes the id
// unique.
func anthropicCallID(id string) string {
	return shorten(cleanName(id), id, maxAnthropicCallID-len("_10000000"))
}

// checkTools refuses tools with the same name in a request.
func checkTools(tools []continuo.ToolSpec) error {
	names := map[string]string{}
	for _, tool := range tools {
		name := ToolName(tool.Name)
		if before, taken := names[name]; taken {
			return fmt.Errorf("%w: the tools %q and %q are both named %s in a request: rename one", continuo.ErrInvalid, before, tool.Name, name)
		}
		names[name] = tool.Name
	}
	return nil
}
