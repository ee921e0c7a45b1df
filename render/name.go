package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// The lengths that providers allow, in bytes. OpenAI's for names are in its OpenAPI document, the one
// for call ids is in the text of its refusals; 64 for Anthropic's is the strictest of its resellers.
const (
	maxName            = 64
	maxOpenAICallID    = 40
	maxAnthropicCallID = 64
)

// ToolName turns a tool's name into one that every provider takes: letters, digits, "_" and "-", at most
// 64. Other characters become "_"; a longer name is cut and ended with a hash of the whole. It is the
// name that requests and the calls in them use.
func ToolName(name string) string {
	clean := cleanName(name)
	if clean == "" {
		clean = "tool"
	}
	return shorten(clean, name, maxName)
}

// speakerName turns a speaker's name into one that OpenAI takes: runs of other characters become one
// "_", none at the ends. It is "" when nothing remains.
func speakerName(name string) string {
	if isName(name) {
		return name
	}
	kept := strings.FieldsFunc(name, func(r rune) bool { return !isNameRune(r) })
	clean := strings.Join(kept, "_")
	return clean[:min(len(clean), maxName)]
}

// isName reports whether the protocols take a name as it is.
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

// callIDs gives out ids, each one once.
type callIDs struct {
	taken map[string]bool
	count map[string]int // of how often an id was asked for
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

// anthropicCallID cleans an id. Room is left for the number that makes it the only one.
func anthropicCallID(id string) string {
	return shorten(cleanName(id), id, maxAnthropicCallID-len("_10000000"))
}

// checkTools refuses tools that would have the same name in a request.
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
