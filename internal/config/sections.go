package config

import (
	"log/slog"
	"time"
)

// LogConfig is the section log.
type LogConfig struct {
	Level       slog.Level `key:"level" enum:"debug,info,warn,error" default:"info" help:"The least severe events that the program logs."`
	Format      string     `key:"format" enum:"text,json" default:"text" help:"How the program logs: lines of key=value, or one JSON object per line."`
	MessageText bool       `key:"message_text" default:"false" help:"Whether logged events may hold the text of messages. Conversations are private: leave it off unless you are looking for a fault."`
}

// ContextConfig is the section context.
type ContextConfig struct {
	MaxMessages        int     `key:"max_messages" min:"1" default:"80" alias:"contextMaxMessages" help:"How many messages of the log a request holds at most, in the views codex, chat, agent and run: of continuo chat, of agents and of the steps of workflows. The newest user message and the open tool calls are in whatever the limits; these bound the history around them."`
	MaxChars           int     `key:"max_chars" min:"1" default:"120000" alias:"contextMaxChars" help:"How many characters (Unicode) of messages a request holds at most, in the same views."`
	MaxTokens          int     `key:"max_tokens" default:"0" help:"How many tokens a request holds at most, in the same views. 0 takes what the model's context_window leaves, and counts no tokens when that is not known."`
	IncludeToolResults bool    `key:"include_tool_results" default:"true" alias:"includeToolResultsInContext" help:"Whether requests show what tools returned. A call and its result are shown or left out together."`
	IncludeCollapsed   bool    `key:"include_collapsed" default:"false" alias:"includeCollapsedUiEventsInContext" help:"Whether requests show system entries that are marked as collapsed, which are events of a user interface. What users, models and tools said is shown, collapsed or not."`
	LowWater           float64 `key:"low_water" above:"0" max:"1" default:"0.4" help:"When the window of a view must move, the share of the budget that stays filled. A first window fills the budget. Lower values move it less often, so that provider caches hit longer, and show fewer messages: on average the share halfway between this one and the whole budget. context.moves says whether a move may choose a share near this one."`
	Moves              string  `key:"moves" enum:"priced,fixed" default:"priced" help:"How far a move of the window goes. priced: of the shares near context.low_water, from a tenth below it to 15 hundredths above, the one that is expected to cost the least, by the prices of the model's cache (by default a tenth of other input) and by how the conversation grows; the mean window is not smaller than that of context.low_water. fixed: to context.low_water. Views of roles always move so."`
	Outputs            string  `key:"outputs" enum:"short,whole" default:"short" help:"What a move of the window fills the budget with, in the same views and in the view continuity. short: as many messages as fit with tool outputs as one line each; the newest outputs are then whole as far as there is room. whole: fewer messages, with the outputs as they are up to tool_output_chars."`
	ToolOutputChars    int     `key:"tool_output_chars" min:"1" default:"8000" help:"Tool outputs up to this many characters (Unicode) are shown whole; longer ones as a preview with the path of the full output."`
	PreviewChars       int     `key:"preview_chars" min:"1" default:"1200" help:"How many characters (Unicode) of a tool output its preview shows at most."`
	Strategy           string  `key:"strategy" enum:"truncate,summarize" default:"truncate" help:"What replaces messages that do not fit, in the same views: truncate marks it, summarize puts a summary there. The messages stay in the log either way."`
	Summarizer         string  `key:"summarizer" allowed:"a name under models" empty:"for the built-in one" help:"The model that makes summaries, for this strategy and for chat.strategy. It is asked in the background after a turn, when the window is about to move; no turn waits for it. Empty: the built-in summarizer, which picks sentences and asks no model. It makes them too where the model fails or takes longer than 30 seconds."`
}

// MovesFixed is the value of context.moves that leaves the low-water mark as it is.
const MovesFixed = "fixed"

// MemoryConfig is the section memory.
type MemoryConfig struct {
	Enabled   string `key:"enabled" enum:"auto,on,off" default:"auto" help:"Whether facts are extracted from what users say after each turn. auto: in the terminal, and in a server that needs no API keys when it starts. Facts can be listed, added, corrected and forgotten either way."`
	Extractor string `key:"extractor" allowed:"a name under models" empty:"for the built-in rules alone" help:"The model that extracts facts in the background after a turn, besides the built-in rules, which ask no model. It is sent what was said; each fact that it finds needs a quote that stands word for word in its message."`
	// DeriveEvery is how often patterns are derived.
	DeriveEvery time.Duration `key:"derive_every" zero:"true" default:"0s" help:"How long after patterns were derived from what a user says, as continuo memory derive does, the user's next turn derives them again in the background. 0: only the command and the API do."`
	Profile     bool          `key:"profile" default:"true" help:"Whether requests show the facts of a user that are always wanted (standing instructions, who the user is, preferences, decisions), in at most 300 tokens, as the last of the system messages. It changes in requests only when the window moves. Has an effect only where memory is enabled."`
	Tools       bool          `key:"tools" default:"false" help:"Whether models are offered the tools memory.recall, memory.remember and memory.forget, under the policy of the section tools. A model can remember only what stands word for word in a message of the user."`
}

// The values of memory.enabled.
const (
	MemoryAuto = "auto"
	MemoryOn   = "on"
	MemoryOff  = "off"
)

// ChatConfig is the section chat.
type ChatConfig struct {
	// MaxContextTokensGiven says that MaxContextTokens was set and is no default.
	MaxContextTokensGiven bool
	MaxHistoryMessages    int    `key:"max_history_messages" min:"1" default:"50" alias:"conversation_max_history_messages" help:"How many messages of history the view continuity shows at most, which POST /chat has in the mode chat. With 2, the newest message stands behind the marker of the gap; from 3 on the first message is there too."`
	MaxContextTokens      int    `key:"max_context_tokens" min:"500" default:"6000" alias:"conversation_max_context_tokens" help:"How many tokens of history the view continuity shows at most. Unless it is set, what the model's context_window leaves applies where that is known."`
	ReservedTokens        int    `key:"reserved_tokens" default:"4500" alias:"reserved_tokens" help:"How many tokens of the model's window all views but replay and handoff hold back for the prompt, the tools and the answer; for the answer at most a quarter of the window, unless models.NAME.max_output_tokens asks for more."`
	Strategy              string `key:"strategy" enum:"truncate,summarize" default:"truncate" alias:"conversation_context_strategy" help:"What the view continuity does with history that does not fit: truncate leaves out the middle and marks the gap; summarize puts a summary there."`
}

// RecallConfig is the section recall.
type RecallConfig struct {
	Share     float64 `key:"share" min:"0" max:"1" default:"0.25" help:"The share of a request's budget that earlier entries take at most which are shown again because a message may need them, in all views but replay and handoff. 0: nothing is recalled, and earlier recalls are not shown."`
	Scope     string  `key:"scope" enum:"conversation,user,project" default:"conversation" help:"Where turns look for earlier entries: in the conversation, in all conversations of its user, or also in the project's conversations without a user. Words of another user are never recalled. Conversations without a user have, with user, only their own entries."`
	Threshold float64 `key:"threshold" above:"0" max:"1" default:"0.15" help:"How probable it must be that a message needs an entry for the entry to be recalled, where the message asks something or refers to what was said; for others the odds must be four times as high, and for an entry with half of the words of a question a twentieth is enough. Lower values recall more, also where nothing is needed."`

	Embeddings EmbeddingsConfig `key:"embeddings"`
	Reranker   RerankerConfig   `key:"reranker"`
}

// RerankerConfig is the section recall.reranker.
type RerankerConfig struct {
	// BaseURL has no slash at its end.
	BaseURL   string        `key:"base_url" kind:"base_url" empty:"for none" help:"Where a server with a reranker model is, such as http://127.0.0.1:8012/v1; /rerank is put behind it, as Cohere, Jina, vLLM and llama.cpp serve it. Where a message recalls anything, and of searches for questions, the text of the first 50 entries is sent there, and its order counts for a quarter of the room. Empty: the words' order stands."`
	Model     string        `key:"model" empty:"for none" help:"The name of the reranker model. Needed where base_url is set."`
	APIKeyEnv string        `key:"api_key_env" kind:"variable" help:"The environment variable that holds the key of that server; empty sends none."`
	Timeout   time.Duration `key:"timeout" min:"10ms" max:"10s" default:"500ms" help:"How long the reranker may take, for which a turn that recalls something waits. After that the words' order stands."`
}

// EmbeddingsConfig is the section recall.embeddings.
type EmbeddingsConfig struct {
	// BaseURL has no slash at its end.
	BaseURL    string `key:"base_url" kind:"base_url" empty:"for none" help:"Where an OpenAI-compatible server makes embeddings, such as http://127.0.0.1:11434/v1; /embeddings is put behind it. The text of messages is sent there. Empty: entries are found by their words alone."`
	Model      string `key:"model" empty:"for none" help:"The name of the embedding model. Needed where base_url is set. With another model or other dimensions all vectors are made again."`
	APIKeyEnv  string `key:"api_key_env" kind:"variable" help:"The environment variable that holds the key of that server; empty sends none."`
	Dimensions int    `key:"dimensions" max:"4096" default:"0" help:"How many dimensions to ask for, of models that have several sizes. 0: as many as the model has, at most 4096."`
}

// Provider names who makes the embeddings, as usage and prices do: openai, or the host of the base URL.
func (c EmbeddingsConfig) Provider() string { return providerAt(c.BaseURL) }

// Provider names who reranks, as usage and prices do: openai, or the host of the base URL.
func (c RerankerConfig) Provider() string { return providerAt(c.BaseURL) }

func providerAt(baseURL string) string {
	if baseURL == openAIURL {
		return "openai"
	}
	return hostOf(baseURL)
}

// TranscriptConfig is the section transcript.
type TranscriptConfig struct {
	HistoryMessages int `key:"history_messages" default:"15" help:"How many messages the HISTORY part of a transcript shows; the current cycle is always whole."`
}

// HandoffConfig is the section handoff.
type HandoffConfig struct {
	MaxMessages       int           `key:"max_messages" min:"1" default:"50" help:"How many messages of a conversation a task that is given away keeps at most: the newest, or with relevance those that have most to do with the work."`
	UserMaxChars      int           `key:"user_max_chars" min:"1" default:"8000" help:"How many characters (Unicode) a user's message may have in a task's history. A longer one is cut 100 characters below it."`
	AssistantMaxChars int           `key:"assistant_max_chars" min:"1" default:"150" help:"How many characters (Unicode) of every other message a task's history keeps."`
	MaxAgents         int           `key:"max_agents" min:"1" default:"8" help:"How many agents of one project may be at work on tasks in one program. Others are refused with status 429."`
	AgentTimeout      time.Duration `key:"agent_timeout" default:"30m" help:"How long an agent may work on a task, instead of turn.timeout; after that it has failed. A connector's own timeout counts as well where it is set."`
}

// CrewsConfig is the section crews.
type CrewsConfig struct {
	Dir string `key:"dir" kind:"path" empty:"for none" default:"crews" help:"The folder with the crews: its files *.yaml and *.yml, one crew each, but not those in folders below it. It need not be there. Empty: none are read. A crew is read again whenever it is named, so that a change counts for the next cycle."`
}

// CrewConfig is the section crew: the defaults for roles whose crew sets nothing else.
type CrewConfig struct {
	MaxConversationLength  int           `key:"max_conversation_length" min:"1" default:"200" alias:"MAX_CONVERSATION_LENGTH" help:"How many messages a role with the view window is shown, where its crew does not say. What is new to it is shown besides, and what is kept is never bounded."`
	SystemReminderInterval int           `key:"system_reminder_interval" min:"1" default:"5" alias:"SYSTEM_REMINDER_INTERVAL" help:"After how many of its answers a role is shown its system prompt again, where its crew does not say."`
	AgentTimeout           time.Duration `key:"agent_timeout" min:"1s" default:"10m" alias:"AGENT_TIMEOUT" help:"How long one turn of a role may take, where its crew does not say; after that it has failed, and the next role speaks."`
}

// TurnConfig is the section turn.
type TurnConfig struct {
	MaxRounds         int           `key:"max_rounds" min:"1" default:"25" help:"How many model requests one turn may make. A turn that asks for tools again and again ends there."`
	Timeout           time.Duration `key:"timeout" default:"10m" help:"How long a whole turn may take. The time that calls wait for a person's decision does not count."`
	IdleTimeout       time.Duration `key:"idle_timeout" default:"2m" help:"How long a model that has begun to answer may send nothing before the request is given up."`
	WaitTimeout       time.Duration `key:"wait_timeout" default:"1m" help:"How long an input waits for the conversation's running turn before it is refused, and how long a model request waits in all while its provider limits the rate of requests, or a model that kept failing is tried."`
	ToolTimeout       time.Duration `key:"tool_timeout" default:"1m" help:"How long one tool call may take; after that its result says that it took too long."`
	Lease             time.Duration `key:"lease" default:"15s" help:"How long a turn whose program gives no sign of life stays its own; after that another program closes it. A program that was killed on this machine is noticed at once. The same for all programs with one store."`
	ShowEvents        string        `key:"show_events" enum:"durable,immediate" default:"durable" help:"When readers of a turn are shown what streams: durable when the store has it, so that nothing that a reader saw is lost; immediate before that, which saves some milliseconds, and a program that is killed loses the last 50 ms or 2 KiB."`
	KeepEvents        time.Duration `key:"keep_events" default:"24h" help:"How long the events of a turn that has ended can be read again. Messages stay in the log."`
	ConnectTimeout    time.Duration `key:"connect_timeout" default:"10s" help:"How long it may take to have a connection to a model's server."`
	FirstTokenTimeout time.Duration `key:"first_token_timeout" default:"5m" help:"How long a model may take until the first text, reasoning or tool call of its answer; after that the request has failed. It is not made again by itself, because the provider has worked on it. A model's own first_token_timeout replaces it."`
	Retries           int           `key:"retries" default:"3" help:"How often a model request is made again that failed for a passing reason before it showed anything. 0 makes each once."`
	RetryMaxWait      time.Duration `key:"retry_max_wait" default:"30s" help:"How long is waited at most before a failed request is made again. A provider that asks for more in Retry-After is not asked again. A model with a fallback waits for at most this long while its provider limits the rate of requests."`
	RetryTimeout      time.Duration `key:"retry_timeout" default:"2m" help:"How long after its first attempt a request may be made again."`
	BreakerFailures   int           `key:"breaker_failures" default:"5" help:"After how many failed requests in a row, each with its retries, a model is left alone for turn.breaker_cooldown. Time limits, broken connections and errors of the provider (5xx) count; rate limits and other refusals (4xx) do not. Where more answers than that are in progress, the failures must outnumber them. 0: never."`
	BreakerCooldown   time.Duration `key:"breaker_cooldown" default:"30s" help:"How long a model that kept failing is left alone before one request tries it."`
}

// The values of turn.show_events.
const (
	ShowDurable   = "durable"
	ShowImmediate = "immediate"
)

// The values of server.keys.
const (
	KeysOnceMade = "once-made"
	KeysAlways   = "always"
	KeysNever    = "never"
)

// ServerConfig is the section server.
type ServerConfig struct {
	Keys            string        `key:"keys" enum:"once-made,always,never" default:"once-made" help:"Whether callers of the server need an API key: once-made as soon as there is one, be it expired or revoked; always; or never, which admits every client that reaches the server. On an address that other machines can reach they always need one."`
	CORS            []string      `key:"cors" kind:"origins" help:"The origins whose web pages may call the server from a browser, such as https://app.example or http://localhost:5173. A page that is listed acts with the rights of the person who has it open. Pages of other origins may not. There is no pattern for all origins."`
	TrustedProxies  []string      `key:"trusted_proxies" kind:"addresses" help:"The addresses of the proxies in front of the server, such as 127.0.0.1 or 10.0.0.0/8, whose header X-Forwarded-For says from where a request came. The audit log has that address then."`
	Inspector       bool          `key:"inspector" default:"true" help:"Whether the server has the inspector, the web page at /. The API is the same without it."`
	SessionLife     time.Duration `key:"session_lifetime" default:"12h" help:"How long the session is valid that an API key opens for the inspector (POST /api/session). It ends with the key, too."`
	MaxTurns        int           `key:"max_turns" default:"0" help:"How many turns of one project may be in progress in one program, or wait for their conversation. Others are refused with status 429. 0: no bound."`
	MaxRequestRate  int           `key:"requests_per_second" default:"0" help:"How many requests per second one program takes of each API key; a second's worth may come at once. Others are refused with status 429. 0: no bound."`
	MaxBodyBytes    int64         `key:"max_body_bytes" min:"1" default:"33554432" help:"How large the body of a request to the server may be, in bytes. Larger ones are refused with status 413."`
	BodyTimeout     time.Duration `key:"body_timeout" default:"30s" help:"How long the body of a request may take to arrive; each 64 KiB of it allow one second more. A slower client gets status 408 and is disconnected."`
	MemoryBudgetMiB int64         `key:"memory_budget_mib" default:"0" help:"How much memory, in MiB, the bodies of all requests in progress and the entries that they read (GET) may take; a body counts seven times its size, which is what decoding and storing it takes, an entry five times. Requests beyond it are refused with status 503 and Retry-After; one that is larger than all of it is taken alone. 0: a quarter of the memory that the system lets the program use."`
	MaxConnections  int           `key:"max_connections" default:"0" help:"How many connections the server holds at once; more wait until one is closed. 0: three quarters of the files that the system lets the program open (ulimit -n)."`
	ShutdownTimeout time.Duration `key:"shutdown_timeout" default:"10s" help:"How long the server waits for running requests when it receives a signal to stop."`
}

// RetentionConfig is the section retention. 0s keeps for ever.
type RetentionConfig struct {
	ArchiveAfter     time.Duration `key:"archive_after" zero:"true" default:"0s" help:"How long after its last change a conversation of users is archived by the server, once an hour. Tasks and side calls are not. 0s: none is."`
	DeleteAfter      time.Duration `key:"delete_after" zero:"true" default:"0s" help:"How long after its last change a conversation of users is deleted permanently, archived or not. What its requests used stays counted. 0s: none is."`
	ChatDeleteAfter  time.Duration `key:"chat_delete_after" zero:"true" default:"0s" help:"The same for conversations whose mode is chat."`
	AgentDeleteAfter time.Duration `key:"agent_delete_after" zero:"true" default:"0s" help:"The same for conversations whose mode is agent."`
	RunDeleteAfter   time.Duration `key:"run_delete_after" zero:"true" default:"0s" help:"The same for conversations whose mode is run."`
	TaskDeleteAfter  time.Duration `key:"task_delete_after" zero:"true" default:"0s" help:"How long after their last change tasks and the work of their agents are deleted. 0s: they are not."`
	SideDeleteAfter  time.Duration `key:"side_delete_after" zero:"true" default:"0s" help:"How long after their last change the side calls of clients (for titles, summaries and the like) are deleted. 0s: they are not."`
	// Feed is how long turns that ended stay in the feed.
	Feed time.Duration `key:"feed" zero:"true" default:"90d" help:"How long turns that ended stay in the feed (GET /api/feed); the server removes older ones, once an hour. A reader that has not read what was removed gets status 410. Turns that a webhook has not accepted are kept for the same time again. 0s: for ever."`
}

// AuditConfig is the section audit.
type AuditConfig struct {
	Enabled bool          `key:"enabled" default:"true" help:"Whether changes, and requests that were refused for want of a key, a right or a limit, are recorded in the audit log: who did what to which conversation, from where, with which outcome; never what was said. continuo audit and GET /api/audit show it."`
	Reads   bool          `key:"reads" default:"false" help:"Whether reads are recorded, too. Those that one caller repeats within a minute are one event."`
	Keep    time.Duration `key:"keep" zero:"true" default:"90d" help:"How long events of the audit log are kept; the server removes older ones, once an hour. 0s: for ever."`
}

// BudgetsConfig is the section budgets.
type BudgetsConfig struct {
	UserTokens    int64   `key:"user_tokens" default:"0" help:"How many tokens, input and output together, the requests to models of each user's conversations may use in a period. Then turns are refused with status 429 until it ends. 0: no bound. API keys have budgets of their own (continuo keys create --budget-tokens)."`
	UserCost      float64 `key:"user_cost" min:"0" max:"1000000000" default:"0" help:"What the requests to models of each user's conversations may cost in a period, in US dollars. Requests without a known price cost nothing. 0: no bound."`
	ProjectTokens int64   `key:"project_tokens" default:"0" help:"How many tokens the requests to models of each project may use in a period. 0: no bound."`
	ProjectCost   float64 `key:"project_cost" min:"0" max:"1000000000" default:"0" help:"What the requests to models of each project may cost in a period, in US dollars. 0: no bound."`
	Period        string  `key:"period" enum:"day,month" default:"month" help:"When the budgets of users and projects are reset: each day or each month, in UTC."`
}

// The values of the settings window that are no views.
const (
	WindowAuto   = "auto"
	WindowClient = "client"
)

// GatewayConfig is the section gateway.
type GatewayConfig struct {
	Window  string   `key:"window" kind:"window" default:"auto" help:"What a model is shown of a client's request to the gateway. client: the client's messages, as they came. The name of a view: what the view shows of the conversation, also to clients that send their whole history, with the client's instructions and tools. auto: a client that sends its history decides, and for others continuity, or codex for a request with tools. The header X-Continuo-View says it for one request."`
	Record  string   `key:"record" enum:"all,stored,off" default:"all" help:"Which requests of the gateway's clients are in the log: all; stored, which leaves out those with store false; or off. A request that is not recorded is forwarded and counted; it needs a model of its own protocol, and no history on the server."`
	MCPURLs []string `key:"mcp_urls" kind:"urls" help:"The addresses at and below which clients of the Responses API may name MCP servers (tools of type mcp with a server_url), which this program then connects to, with the headers that the client gives. Without any, clients name servers of mcp.servers by their names (server_label) only."`
}

// DemoConfig is the section demo.
type DemoConfig struct {
	Pace time.Duration `key:"pace" zero:"true" default:"0s" help:"How long the built-in demo model waits before each word, to see what a slow model's stream is like. 0s: 20ms in a terminal, and not at all elsewhere."`
}

// PromptsConfig is the section prompts.
type PromptsConfig struct {
	Dir string `key:"dir" kind:"path" empty:"for none" help:"A folder whose files replace the built-in prompts of the same names. Empty: the built-in ones."`
}

// WorkflowsConfig is the section workflows.
type WorkflowsConfig struct {
	Dir string `key:"dir" kind:"path" empty:"for none" default:"workflows" help:"The folder with the workflows: its files *.yaml and *.yml, one workflow each, but not those in folders below it. It need not be there. Empty: none are read. A workflow is read again whenever it is named, so that a change counts for the next run."`
}

// ToolsConfig is the section tools.
type ToolsConfig struct {
	// Allow, Ask and Deny are patterns of tool names. A pattern that matches no tool is no error here.
	Allow          []string      `key:"allow" kind:"tools" default:"fs.read, fs.list, fs.search, conversation.search" help:"The tools that models may call without asking. Where patterns of several lists match a tool, tools.deny counts before tools.ask, and that before tools.allow. In the file, a pattern that begins with * stands in quotes."`
	Ask            []string      `key:"ask" kind:"tools" help:"The tools of which each call waits until a person allows or denies it."`
	Deny           []string      `key:"deny" kind:"tools" help:"The tools that models may not call; they are not offered."`
	Otherwise      string        `key:"otherwise" enum:"ask,allow,deny" default:"ask" help:"What is decided about a tool that none of the lists matches."`
	AskTimeout     time.Duration `key:"ask_timeout" default:"5m" help:"How long a call waits for a person's decision before it is denied."`
	MaxOutputBytes int           `key:"max_output_bytes" min:"1" default:"67108864" help:"How large one output of a tool may be, in bytes. A larger one is not kept: the call fails, and the error tells the model to ask for less."`
	DenyFiles      []string      `key:"deny_files" kind:"files" default:".env, .env.*, !.env.example, !.env.sample, !.env.template, *.pem, *.key, *.p12, *.pfx, *.keystore, key.txt, id_rsa*, id_dsa*, id_ecdsa*, id_ed25519*, .ssh, .gnupg, .aws, .netrc, .npmrc, .pypirc, .pgpass, .git-credentials, **/.git/config" help:"Files of @project that no tool reads, lists or writes, because they usually hold secrets: patterns of names, as fs.search takes them. One that matches a folder covers what is in it; one that begins with ! makes an exception from those before it. A list given here replaces the default. The store's own files and objects are out of reach in any case."`
	ProjectDir     string        `key:"project_dir" kind:"path" empty:"for none" help:"The folder that models may read as @project, in the conversations of the program's own project (setting project). Nothing outside of it can be read, whatever a path or a link says. Empty: there is no @project."`
}

// TelemetryConfig is the section telemetry.
type TelemetryConfig struct {
	// OTLPEndpoint has no slash at its end.
	OTLPEndpoint   string  `key:"otlp_endpoint" kind:"base_url" allowed:"an http or https URL with a host and without user, query and fragment, such as http://127.0.0.1:4318" empty:"for none" help:"Where an OpenTelemetry collector takes traces and metrics as OTLP over HTTP (protobuf), such as http://127.0.0.1:4318; /v1/traces and /v1/metrics are put behind it. Empty: what the variable OTEL_EXPORTER_OTLP_ENDPOINT says, and nothing is sent when that is not set."`
	OTLPHeadersEnv string  `key:"otlp_headers_env" kind:"variable" default:"OTEL_EXPORTER_OTLP_HEADERS" help:"The environment variable that holds headers for the collector, as name=value pairs between commas. Keys belong there."`
	Sample         float64 `key:"sample" max:"1" default:"1" help:"The share of turns that are traced. Metrics count all of them."`
	MessageText    bool    `key:"message_text" default:"false" help:"Whether spans may hold the text of requests, answers, tool arguments and results, up to 32 KiB each. Conversations are private: leave it off unless you are looking for a fault."`
}
