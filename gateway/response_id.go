package gateway

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// Ids say where what they name is in the log, so that it is found by its id alone, on any replica and after an import
// under the same ids. They are opaque to clients.

// responseRef is what the id of a response names: a turn, and the seq of its first entry.
type responseRef struct {
	conversation, turn string
	first              int64
}

// hexID is the part of an id of the log behind its prefix.
const hexID = "([0-9a-f]{32})"

var (
	responseIDs = regexp.MustCompile(`^resp_` + hexID + `([0-9a-f]{8})(\w+)$`)
	itemIDs     = regexp.MustCompile(`^[a-z]+_` + hexID + `([0-9a-f]{8})([0-9a-f]{2,})$`)
)

func (ref responseRef) String() string {
	return fmt.Sprintf("resp_%s%08x%s", strings.TrimPrefix(ref.conversation, "conv_"), ref.first, strings.TrimPrefix(ref.turn, "turn_"))
}

// parseResponseID reads the id of a response; ok is false for any other text.
func parseResponseID(id string) (ref responseRef, ok bool) {
	parts := responseIDs.FindStringSubmatch(id)
	if parts == nil {
		return responseRef{}, false
	}
	first, err := strconv.ParseInt(parts[2], 16, 64)
	return responseRef{"conv_" + parts[1], "turn_" + parts[3], first}, err == nil
}

// itemRef is what the id of an item names: an entry of the conversation that it was written to, and the item's index
// among those of the entry.
type itemRef struct {
	conversation string
	seq          int64
	index        int
}

// itemPrefixes are the prefixes of the ids of items by their type, as OpenAI has them.
var itemPrefixes = map[string]string{
	responses.TypeMessage: "msg", responses.TypeReasoning: "rs", responses.TypeFunctionCall: "fc", responses.TypeFunctionCallOutput: "fco",
	responses.TypeCustomCall: "ctc", responses.TypeCustomCallOutput: "cto", responses.TypeCompaction: "cmp",
	"web_search_call": "ws", "file_search_call": "fs", "code_interpreter_call": "ci", "image_generation_call": "ig", "computer_call": "cu",
	"mcp_call": "mcp", "mcp_list_tools": "mcpl", "mcp_approval_request": "mcpr",
}

// id is the id of an item of a type.
func (ref itemRef) id(kind string) string {
	prefix, known := itemPrefixes[kind]
	if !known {
		prefix = "item"
	}
	return fmt.Sprintf("%s_%s%08x%02x", prefix, strings.TrimPrefix(ref.conversation, "conv_"), ref.seq, ref.index)
}

// parseItemID reads the id of an item; ok is false for any other text.
func parseItemID(id string) (ref itemRef, ok bool) {
	parts := itemIDs.FindStringSubmatch(id)
	if parts == nil {
		return itemRef{}, false
	}
	seq, err := strconv.ParseInt(parts[2], 16, 64)
	index, failed := strconv.ParseInt(parts[3], 16, 32)
	return itemRef{"conv_" + parts[1], seq, int(index)}, err == nil && failed == nil
}

// refOf is the reference of an item of an entry.
func refOf(entry *continuo.Entry, index int) itemRef {
	return itemRef{entry.ConversationID, entry.Seq, index}
}

// createdAt is when the response of a turn was created: the time in the turn's id, which is the same in its stream and
// whenever it is shown again. It is 0 for an id without a time.
func createdAt(turnID string) float64 {
	digits := strings.TrimPrefix(turnID, "turn_")
	milliseconds, err := strconv.ParseInt(digits[:min(len(digits), 12)], 16, 64)
	if err != nil {
		return 0
	}
	return float64(milliseconds / 1000)
}
