package interchange

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
)

// The formats. FormatSource and FormatOpenAIJSONL are for Export; the others are read and recognised.
const (
	FormatOpenAI       = "openai"        // OpenAI chat messages
	FormatOpenAILegacy = "openai-legacy" // the same with function_call and the role function
	FormatAnthropic    = "anthropic"     // Anthropic messages: content blocks
	FormatUnified      = "unified"       // the unified log's predecessor, camelCase
	FormatPipeline     = "pipeline"      // chat_<id>.json of the multi-role pipeline
	FormatContinuo     = "continuo"      // Continuo's own lossless form
	FormatOpenAIJSONL  = "openai-jsonl"  // OpenAI chat messages, one conversation a line
	FormatSource       = "source"        // the conversation's original protocol
)

var readable = []string{FormatOpenAI, FormatOpenAILegacy, FormatAnthropic, FormatUnified, FormatPipeline, FormatContinuo}

// Document is one imported conversation, ready for continuo.Log.Import.
type Document struct {
	// Conversation has Title, ActiveMode, Metadata, UserID, and the Key derived from the source's id. The key
	// never depends on the content: two equal conversations are two.
	Conversation continuo.Conversation
	Entries      []continuo.Entry
	Repairs      []Repair // by index
	// Envelopes are the texts of the envelopes that rounds of the entries name by their SHA-256.
	Envelopes []string
	Source    string // position in the source, such as "a.jsonl, line 3"
	Format    string // one of the formats that are read
	SourceID  string // the source's id of the conversation, if it is not the Key
	File      string // name of the file as it was given; "" for none
	Position  int    // in its file, from 1, invalid ones counted; 0 for a single one

	raw []json.RawMessage // the messages of the source
}

// Repair is one change by an import, of a message that the log would have refused.
type Repair struct {
	Index  int           `json:"index"` // of the message in the source, from 0; -1 for the conversation's own fields
	Rule   continuo.Rule `json:"rule"`
	Action string        `json:"action"` // the change, one sentence
}

// The rules of repairs that are not rules of the log.
const (
	RuleLateResult         continuo.Rule = "late_result"
	RuleWrongGroup         continuo.Rule = "wrong_group"
	RuleUnansweredAtEnd    continuo.Rule = "unanswered_at_end"
	RuleOrphanFunction     continuo.Rule = "orphan_function"
	RuleEmptyToolCalls     continuo.Rule = messages.RuleEmptyToolCalls
	RuleLegacyFunctionCall continuo.Rule = "legacy_function_call"
	RuleLoneSurrogate      continuo.Rule = "lone_surrogate"
	RuleBadContent         continuo.Rule = messages.RuleBadContent
	RuleSplitGroup         continuo.Rule = "split_group" // a call is shown to models and its result is not, or the reverse
)

// NoResult is the text of a tool entry that replaces a result missing in the source.
const NoResult = "No result was recorded for this call."

// Options configures reading. The zero value detects the format.
type Options struct {
	// Format forces one of the formats that can be read. Default: detected for each conversation.
	Format string
	// MaxBytes bounds the source of one conversation. Default 256 MiB.
	MaxBytes int
}

func (o Options) filled() (Options, error) {
	if o.Format == FormatOpenAIJSONL {
		o.Format = FormatOpenAI
	}
	if o.Format != "" && !slices.Contains(readable, o.Format) {
		return o, invalid("unknown format %q: use one of %s", o.Format, strings.Join(readable, ", "))
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	return o, nil
}

// Messages reads one list of messages. An empty format is detected.
func Messages(list json.RawMessage, format string) (Document, error) {
	o, err := Options{Format: format, MaxBytes: len(list) + 1}.filled()
	if err != nil {
		return Document{}, fmt.Errorf("read messages: %w", err)
	}
	if o.Format == FormatContinuo {
		return Document{}, fmt.Errorf("read messages: %w", invalid("the format continuo is a file of lines, not a list of messages"))
	}
	document, err := readMessages(list, o)
	if err != nil {
		return Document{}, fmt.Errorf("read messages: %w", err)
	}
	return document, nil
}

func readMessages(list json.RawMessage, o Options) (Document, error) {
	if err := checkJSON(list, o.MaxBytes); err != nil {
		return Document{}, err
	}
	source, err := parseList(list)
	if err != nil {
		return Document{}, err
	}
	source.position = "messages"
	return source.document(o)
}

// invalid returns an error about the input.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", continuo.ErrInvalid, fmt.Sprintf(format, args...))
}
