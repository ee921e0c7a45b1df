package continuo

import "encoding/json"

// Round records one model request of a turn, on the assistant entry that it produced. With the log up to the previous
// entry, it is enough to rebuild the request byte for byte.
type Round struct {
	// View names the view of the request; ViewHash identifies the view's limits and rules.
	View     string `json:"view"`
	ViewHash string `json:"view_hash"`
	// At is the newest seq that was available to the request.
	At     int64  `json:"at"`
	Window Window `json:"window"`
	// Cursor is the cursor of a crew's role after this answer; 0 in every other round.
	Cursor int64 `json:"cursor,omitempty"`
	// Provider and Model name the model that answered; Protocol is the wire format of the request.
	Provider string `json:"provider,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Model    string `json:"model,omitempty"`
	// ContextWindow is the model's context window in tokens as known at the build, 0 for unknown.
	ContextWindow int `json:"context_window,omitempty"`
	// Envelope is the SHA-256 of the stored Envelope, in hex.
	Envelope string `json:"envelope,omitempty"`
	// RequestSHA256 is the SHA-256 of the request's body, in hex; RequestBytes its length.
	RequestSHA256 string `json:"request_sha256,omitempty"`
	RequestBytes  int    `json:"request_bytes,omitempty"`
	// CachePrices are the prices by which the request's move of the window was decided; zero for the default ones, and where
	// the window did not move.
	CachePrices CachePrices `json:"cache_prices,omitzero"`
	// Missing are the parts that the request left out.
	Missing []MissingPart `json:"missing,omitempty"`
	// Omitted are the members of the client's request that the request to the model does not have, under the client's names.
	Omitted []string `json:"omitted,omitempty"`
	// EstimatedTokens is the plan's token count of the messages and the prompt together.
	EstimatedTokens int `json:"estimated_tokens,omitempty"`
	// Correction is what the model's reports before this one say about the estimate; zero where there was none.
	Correction   Correction `json:"correction,omitzero"`
	Usage        *Usage     `json:"usage,omitempty"`
	FinishReason string     `json:"finish_reason,omitempty"`
	LatencyMS    int64      `json:"latency_ms,omitempty"`
	FirstDeltaMS int64      `json:"first_delta_ms,omitempty"`
}

// MissingPart names a part that a request left out.
type MissingPart struct {
	Seq     int64       `json:"seq"`
	Part    int         `json:"part"`             // its index in the content, from 0
	Object  string      `json:"object,omitempty"` // the id of an attachment that could not be read
	Type    string      `json:"type,omitempty"`   // of a part that the format cannot represent
	Problem PartProblem `json:"problem"`
	Err     error       `json:"-"` // for the program's own log; nil in a replayed request
}

// PartProblem says why a part is missing from a request.
type PartProblem string

// The problems: the object is missing or truncated; its bytes do not match or it could not be read; the request's
// format cannot represent the part.
const (
	PartGone        PartProblem = "gone"
	PartUnreadable  PartProblem = "unreadable"
	PartUnsupported PartProblem = "unsupported"
)

// Usage is the token usage that a provider reported.
type Usage struct {
	InputTokens      int `json:"input_tokens"`
	OutputTokens     int `json:"output_tokens"`
	CachedTokens     int `json:"cached_tokens,omitempty"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int `json:"reasoning_tokens,omitempty"`
	// Cost is what this usage costs at the prices of its time; absent where no price is known.
	Cost Cost `json:"cost,omitzero"`
}

// Add adds the usage of a later request. The sum has a cost only if every request in it that used tokens has one.
func (u *Usage) Add(later Usage) {
	if later == (Usage{}) {
		return
	}
	switch {
	case *u == (Usage{}):
		u.Cost = later.Cost
	case u.Cost.Currency != "" && u.Cost.Currency == later.Cost.Currency:
		u.Cost.Nano += later.Cost.Nano
	default:
		u.Cost = Cost{}
	}
	u.InputTokens += later.InputTokens
	u.OutputTokens += later.OutputTokens
	u.CachedTokens += later.CachedTokens
	u.CacheWriteTokens += later.CacheWriteTokens
	u.ReasoningTokens += later.ReasoningTokens
}

// Cost is an amount of money; the zero value is an unknown one.
type Cost struct {
	// Nano is the amount in billionths of the currency's unit: 12345678 is 0.012345678.
	Nano int64 `json:"nano"`
	// Currency is its ISO 4217 code.
	Currency string `json:"currency"`
}

// USD is the currency of all prices.
const USD = "USD"

// PriceList knows what requests to models cost.
type PriceList interface {
	// Cost returns what a request to a provider's model costs; zero where no price is known. It must be safe for
	// concurrent use.
	Cost(provider, model string, usage Usage) Cost
}

// CachePrices are what a model's provider charges for input that its cache has, and for input that it writes to the cache,
// in millionths of the price of other input. The zero value is DefaultCachePrices.
type CachePrices struct {
	Read  int `json:"read"`
	Write int `json:"write"`
}

// DefaultCachePrices apply where a model's are not known.
var DefaultCachePrices = CachePrices{Read: million / 10, Write: million}

// Saved is what input costs less from the cache than written to it, in millionths of the price of other input.
func (p CachePrices) Saved() int {
	if p.Write <= 0 || p.Read < 0 || max(p.Write, p.Read) > mostPrice {
		p = DefaultCachePrices
	}
	return max(p.Write-p.Read, 0)
}

// mostPrice bounds a price, which may be imported.
const mostPrice = 100 * million

// Window is the position of a view's window during an epoch: while it does not move, each request extends the previous
// one byte for byte.
type Window struct {
	// Epoch counts the window's positions from 1.
	Epoch int64 `json:"epoch"`
	// Start is the first seq of the range that is shown up to the newest entry.
	Start int64 `json:"start"`
	// Pins are seqs before Start that are shown in addition, ascending.
	Pins []int64 `json:"pins,omitempty"`
	// Tool outputs before PreviewBefore are shown as previews, those before LineBefore as one line.
	PreviewBefore int64 `json:"preview_before,omitempty"`
	LineBefore    int64 `json:"line_before,omitempty"`
	// GivenUp are the entries that are shortened before older ones.
	GivenUp GivenUp `json:"given_up,omitzero"`
	// Summary is the seq of the summary that replaces entries that are not shown; 0 for none.
	Summary int64 `json:"summary,omitempty"`
	// Profile is the profile that the requests of the epoch show among the system messages; nil for none.
	Profile *ProfileRef `json:"profile,omitempty"`
	// Left is how many messages before Start a role of a crew is shown neither directly nor by a summary; -1 for too
	// many to count. Only the views of roles count them.
	Left int `json:"left,omitempty"`
	// Limit names the limit because of which entries before Start are not shown: messages, chars or tokens; empty for
	// none. A first window has one too if the log does not fit.
	Limit string `json:"limit,omitempty"`
	// CutLimit names the limit because of which tool outputs are cut: chars or tokens; empty for none.
	CutLimit string `json:"cut_limit,omitempty"`
	// Mark is the share of the limits to which the move filled the window, in ten-thousandths; 0 where it was the view's.
	Mark int `json:"mark,omitempty"`
	// Growth is by how many tokens the conversation grows from request to request, an average over its epochs; 0 for unknown.
	Growth int `json:"growth,omitempty"`
	// Markers says whether gaps are marked; false only where the budget has no room for the marker.
	Markers bool `json:"markers,omitempty"`
}

// GivenUp are entries that a window shortens before older ones, because they are needed least. The lists are seqs, ascending.
type GivenUp struct {
	// ReadAgain are results of tools whose lines later results have again.
	ReadAgain []int64 `json:"read_again,omitempty"`
	// Failed are results of calls that failed, of tools that succeeded later.
	Failed []int64 `json:"failed,omitempty"`
	// Described are messages and results with images that an answer followed.
	Described []int64 `json:"described,omitempty"`
}

// IsZero reports whether nothing was given up.
func (g GivenUp) IsZero() bool { return len(g.ReadAgain)+len(g.Failed)+len(g.Described) == 0 }

// Envelope is everything in a request that does not come from the log. It is stored once under its hash, so that a
// request can be rebuilt after prompts, tools or settings have changed.
type Envelope struct {
	Model  string   `json:"model"`
	System []string `json:"system,omitempty"`
	// Instruction describes the tools and the answer format to a model without native tool calls, in place of Tools;
	// empty for every other model.
	Instruction     string     `json:"instruction,omitempty"`
	Tools           []ToolSpec `json:"tools,omitempty"`
	MaxOutputTokens int        `json:"max_output_tokens,omitempty"`
	Temperature     *float64   `json:"temperature,omitempty"`
	Stream          bool       `json:"stream,omitempty"`
	// ResponseFormat requests an answer in a format, in the protocol's form.
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
	// Roles says how messages were arranged for a model that does not accept every sequence of roles.
	Roles Roles `json:"roles,omitempty"`
	// NoEncryptedReasoning says that the request does not ask for encrypted reasoning, because the model has none.
	NoEncryptedReasoning bool `json:"no_encrypted_reasoning,omitempty"`
	// NoOldThinking says that thinking before the newest message of the user is left out, because the provider refused a
	// signature in it.
	NoOldThinking bool `json:"no_old_thinking,omitempty"`
	// ReasoningEffort is how much the model is to reason: none, minimal, low, medium, high or xhigh; empty for the
	// model's own.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	// Sampling and Own are what a client asks of the answer; nil for a request of no client.
	Sampling *Sampling   `json:"sampling,omitempty"`
	Own      *OwnMembers `json:"own,omitempty"`
	// View is the complete definition of the request's view.
	View json.RawMessage `json:"view,omitempty"`
	// Forwarded is the whole body of a request that was sent as a client made it; nil for one that was built from the log.
	Forwarded *ForwardedBody `json:"forwarded,omitempty"`
}

// ForwardedBody is the body of a forwarded request, as its difference to another one: the first Prefix bytes of that
// body, then Text, then its last Suffix bytes. Base is the hash of the other one's envelope; "" for an empty body.
type ForwardedBody struct {
	Base   string `json:"base,omitempty"`
	Prefix int    `json:"prefix,omitempty"`
	Suffix int    `json:"suffix,omitempty"`
	Text   string `json:"text"`
}

// Roles names the sequences of roles that a model accepts in a chat completions request.
type Roles string

// The sequences. RolesFree: any that the protocol allows. RolesStrict: one system message, then user and assistant
// alternately. RolesNoSystem: the same without a system message, whose text begins the first user message.
const (
	RolesFree     Roles = ""
	RolesStrict   Roles = "strict"
	RolesNoSystem Roles = "no_system"
)
