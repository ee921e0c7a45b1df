package span

// The names of the semantic conventions, release v1.41.0, the last one that has the GenAI names under a version number:
// they have since moved to a repository of their own, which renames some of the metrics and has no release yet. A test
// compares these with the module's own list for v1.41.0.
const (
	OperationName     = "gen_ai.operation.name"
	ProviderName      = "gen_ai.provider.name"
	ConversationID    = "gen_ai.conversation.id"
	RequestModel      = "gen_ai.request.model"
	RequestStream     = "gen_ai.request.stream"
	ResponseModel     = "gen_ai.response.model"
	FinishReasons     = "gen_ai.response.finish_reasons"
	TimeToFirstChunk  = "gen_ai.response.time_to_first_chunk" // in seconds
	InputTokens       = "gen_ai.usage.input_tokens"           // including those from and to a cache
	OutputTokens      = "gen_ai.usage.output_tokens"
	CacheReadTokens   = "gen_ai.usage.cache_read.input_tokens"
	CacheWriteTokens  = "gen_ai.usage.cache_creation.input_tokens"
	ReasoningTokens   = "gen_ai.usage.reasoning.output_tokens"
	OutputMessages    = "gen_ai.output.messages"
	TokenType         = "gen_ai.token.type"
	ToolName          = "gen_ai.tool.name"
	ToolType          = "gen_ai.tool.type"
	ToolCallID        = "gen_ai.tool.call.id"
	ToolCallArguments = "gen_ai.tool.call.arguments"
	ToolCallResult    = "gen_ai.tool.call.result"
	ErrorType         = "error.type"
	HTTPStatus        = "http.response.status_code"
	HTTPMethod        = "http.request.method"
	HTTPRoute         = "http.route"
	DBSystem          = "db.system.name"
	DBOperation       = "db.operation.name"
)

// The metrics of the conventions.
const (
	TokenUsage             = "gen_ai.client.token.usage"
	OperationDuration      = "gen_ai.client.operation.duration"
	OperationToFirstChunk  = "gen_ai.client.operation.time_to_first_chunk"
	StoreOperationDuration = "db.client.operation.duration"
)

// Continuo's own names, for what the conventions do not cover.
const (
	TurnID       = "continuo.turn.id"
	SessionID    = "session.id" // the conversation's key
	Mode         = "continuo.mode"
	RequestBytes = "continuo.request.bytes"
	RequestBody  = "continuo.request.body"
	TextCut      = "continuo.text_cut"
	Abandoned    = "continuo.abandoned"
	ResultBytes  = "continuo.tool.result_bytes"
	Entries      = "continuo.entries"
	Events       = "continuo.events"
	State        = "continuo.turn.state"
)
