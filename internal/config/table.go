package config

import "strings"

// defaultSecrets are names under which programs store keys and passwords.
var defaultSecrets = []string{
	".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore",
	"key.txt", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".ssh", ".gnupg", ".aws", ".netrc", ".npmrc", ".pypirc", ".pgpass",
	".git-credentials", "**/.git/config",
}

// table lists every setting outside of models, each with its default already set. home is for paths that begin with "~/".
func (c *Config) table(home string) []*setting {
	rows := slicesOf(
		c.basicRows(),
		c.storeRows(home),
		c.contextRows(),
		c.chatRows(),
		c.handoffRows(),
		c.crewRows(home),
		c.telegramRows(),
		c.turnRows(),
		c.requestRows(),
		c.serverRows(home),
		c.telemetryRows(),
	)
	for _, row := range rows {
		if row.phrase == "" {
			row.mustRead(row.def)
		}
	}
	return rows
}

func slicesOf(groups ...[]*setting) []*setting {
	var all []*setting
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

func (c *Config) basicRows() []*setting {
	return []*setting{{
		key: "listen", value: address(&c.Listen), def: "127.0.0.1:8787",
		doc: "Where serve listens, as host:port. Port 0 takes a free one.",
	}, {
		key: "project", value: project(&c.Project), def: "default",
		doc: "The project that conversations belong to when nothing else says so.",
	}, {
		key: "model", value: name(&c.DefaultModel, "demo or a name under models or connectors"), def: DemoModel,
		doc: "The model that is used when a request or an agent names none: demo, which is built in and needs no upstream, or a name under models or connectors.",
	}, {
		key: "log.level", value: logLevel(&c.Log.Level), def: "info",
		doc: "The least severe events that the program logs.",
	}, {
		key: "log.format", value: oneOf(&c.Log.Format, "text", "json"), def: "text",
		doc: "How the program logs: lines of key=value, or one JSON object per line.",
	}, {
		key: "log.message_text", value: boolean(&c.Log.MessageText), def: "false",
		doc: "Whether logged events may hold the text of messages. Conversations are private: leave it off unless you are looking for a fault.",
	}}
}

func (c *Config) contextRows() []*setting {
	return []*setting{{
		key: "context.max_messages", value: whole(&c.Context.MaxMessages, 1), def: "80", knownAs: "contextMaxMessages",
		doc: "How many messages of the log a request holds at most, in the views codex, chat, agent and run: of continuo chat, of agents and of the steps of workflows. The newest user message and the open tool calls are in whatever the limits; these bound the history around them.",
	}, {
		key: "context.max_chars", value: whole(&c.Context.MaxChars, 1), def: "120000", knownAs: "contextMaxChars",
		doc: "How many characters (Unicode) of messages a request holds at most, in the same views.",
	}, {
		key: "context.max_tokens", value: whole(&c.Context.MaxTokens, 0), def: "0",
		doc: "How many tokens a request holds at most, in the same views. 0 takes what the model's context_window leaves, and counts no tokens when that is not known.",
	}, {
		key: "context.include_tool_results", value: boolean(&c.Context.IncludeToolResults), def: "true", knownAs: "includeToolResultsInContext",
		doc: "Whether requests show what tools returned. A call and its result are shown or left out together.",
	}, {
		key: "context.include_collapsed", value: boolean(&c.Context.IncludeCollapsed), def: "false", knownAs: "includeCollapsedUiEventsInContext",
		doc: "Whether requests show system entries that are marked as collapsed, which are events of a user interface. What users, models and tools said is shown, collapsed or not.",
	}, {
		key: "context.low_water", value: share(&c.Context.LowWater), def: "0.6",
		doc: "When the window of a view must move, the share of the budget that stays filled. A first window fills the budget. Lower values move it less often, so that provider caches hit longer.",
	}, {
		key: "context.tool_output_chars", value: whole(&c.Context.ToolOutputChars, 1), def: "8000",
		doc: "Tool outputs up to this many characters (Unicode) are shown whole; longer ones as a preview with the path of the full output.",
	}, {
		key: "context.preview_chars", value: whole(&c.Context.PreviewChars, 1), def: "1200",
		doc: "How many characters (Unicode) of a tool output its preview shows at most.",
	}, {
		key: "context.strategy", value: oneOf(&c.Context.Strategy, "truncate", "summarize"), def: "truncate",
		doc: "What stands in the place of messages that do not fit, in the same views: truncate marks it, summarize puts a summary there. The messages stay in the log either way.",
	}, {
		key: "context.summarizer", value: summarizer(&c.Context.Summarizer), def: "",
		doc: "The model that makes summaries, for this strategy and for chat.strategy. Empty: the built-in summarizer, which picks sentences and asks no model. It makes them too where the model fails or takes longer than 30 seconds.",
	}}
}

func (c *Config) chatRows() []*setting {
	return []*setting{{
		key: "chat.max_history_messages", value: whole(&c.Chat.MaxHistoryMessages, 1), def: "50", knownAs: "conversation_max_history_messages",
		doc: "How many messages of history the view continuity shows at most, which POST /chat has in the mode chat. With 2, the newest message stands behind the marker of the gap; from 3 on the first message is there too.",
	}, {
		key: "chat.max_context_tokens", value: whole(&c.Chat.MaxContextTokens, 500), def: "6000", knownAs: "conversation_max_context_tokens",
		doc: "How many tokens of history the view continuity shows at most. Unless it is set, what the model's context_window leaves takes its place where that is known.",
	}, {
		key: "chat.reserved_tokens", value: whole(&c.Chat.ReservedTokens, 0), def: "4500", knownAs: "reserved_tokens",
		doc: "How many tokens of the model's window all views but replay and handoff hold back for the prompt, the tools and the answer; for the answer at most a quarter of the window, unless models.NAME.max_output_tokens asks for more.",
	}, {
		key: "chat.strategy", value: oneOf(&c.Chat.Strategy, "truncate", "summarize"), def: "truncate", knownAs: "conversation_context_strategy",
		doc: "What the view continuity does with history that does not fit: truncate leaves out the middle and marks the place; summarize puts a summary there.",
	}, {
		key: "transcript.history_messages", value: whole(&c.Transcript.HistoryMessages, 0), def: "15",
		doc: "How many messages the HISTORY part of a transcript shows; the current cycle is always whole.",
	}}
}

func (c *Config) turnRows() []*setting {
	return []*setting{{
		key: "turn.max_rounds", value: whole(&c.Turn.MaxRounds, 1), def: "25",
		doc: "How many model requests one turn may make. A turn that asks for tools again and again ends there.",
	}, {
		key: "turn.timeout", value: duration(&c.Turn.Timeout), def: "10m",
		doc: "How long a whole turn may take. The time that calls wait for a person's decision does not count.",
	}, {
		key: "turn.idle_timeout", value: duration(&c.Turn.IdleTimeout), def: "2m",
		doc: "How long a model that has begun to answer may send nothing before the request is given up.",
	}, {
		key: "turn.wait_timeout", value: duration(&c.Turn.WaitTimeout), def: "1m",
		doc: "How long an input waits for the conversation's running turn before it is refused, and how long a model request waits in all while its provider limits the rate of requests, or a model that kept failing is tried.",
	}, {
		key: "turn.tool_timeout", value: duration(&c.Turn.ToolTimeout), def: "1m",
		doc: "How long one tool call may take; after that its result says that it took too long.",
	}, {
		key: "turn.lease", value: duration(&c.Turn.Lease), def: "15s",
		doc: "How long a turn whose program gives no sign of life stays its own; after that another program closes it. A program that was killed on this machine is noticed at once. The same for all programs with one store.",
	}, {
		key: "turn.show_events", value: oneOf(&c.Turn.ShowEvents, ShowDurable, ShowImmediate), def: ShowDurable,
		doc: "When readers of a turn are shown what streams: durable when the store has it, so that nothing that somebody saw is lost; immediate before that, which saves some milliseconds, and a program that is killed loses the last 50 ms or 2 KiB.",
	}, {
		key: "turn.keep_events", value: duration(&c.Turn.KeepEvents), def: "24h",
		doc: "How long the events of a turn that has ended can be heard again. What was said stays in the log.",
	}}
}

// requestRows are the part of the section turn that is about one model request.
func (c *Config) requestRows() []*setting {
	return []*setting{{
		key: "turn.connect_timeout", value: duration(&c.Turn.ConnectTimeout), def: "10s",
		doc: "How long it may take to have a connection to a model's server.",
	}, {
		key: "turn.first_token_timeout", value: duration(&c.Turn.FirstTokenTimeout), def: "5m",
		doc: "How long a model may take until the first text, reasoning or tool call of its answer; after that the request has failed. It is not made again by itself, because the provider has worked on it. A model's own first_token_timeout replaces it.",
	}, {
		key: "turn.retries", value: whole(&c.Turn.Retries, 0), def: "3",
		doc: "How often a model request is made again that failed for a passing reason before it showed anything. 0 makes each once.",
	}, {
		key: "turn.retry_max_wait", value: duration(&c.Turn.RetryMaxWait), def: "30s",
		doc: "How long is waited at most before a failed request is made again. A provider that asks for more in Retry-After is not asked again. A model with a fallback waits for at most this long while its provider limits the rate of requests.",
	}, {
		key: "turn.retry_timeout", value: duration(&c.Turn.RetryTimeout), def: "2m",
		doc: "How long after its first attempt a request may be made again.",
	}, {
		key: "turn.breaker_failures", value: whole(&c.Turn.BreakerFailures, 0), def: "5",
		doc: "After how many failed requests in a row, each with its retries, a model is left alone for turn.breaker_cooldown. Time limits, broken connections and errors of the provider (5xx) count; rate limits and other refusals (4xx) do not. Where more answers than that are under way, the failures must outnumber them. 0: never.",
	}, {
		key: "turn.breaker_cooldown", value: duration(&c.Turn.BreakerCooldown), def: "30s",
		doc: "How long a model that kept failing is left alone before one request tries it.",
	}}
}

func (c *Config) serverRows(home string) []*setting {
	return []*setting{{
		key: "server.keys", value: oneOf(&c.Server.Keys, KeysOnceMade, KeysAlways, KeysNever), def: KeysOnceMade,
		doc: "Whether callers of the server need an API key: once-made as soon as there is one, be it expired or revoked; always; or never, which lets in whoever reaches the server. On an address that other machines can reach they always need one.",
	}, {
		key: "server.max_turns", value: whole(&c.Server.MaxTurns, 0), def: "0",
		doc: "How many turns of one project may be under way in one program, or wait for their conversation. Others are refused with status 429. 0: no bound.",
	}, {
		key: "server.requests_per_second", value: whole(&c.Server.MaxRequestRate, 0), def: "0",
		doc: "How many requests per second one program takes of each API key; a second's worth may come at once. Others are refused with status 429. 0: no bound.",
	}, {
		key: "server.max_body_bytes", value: whole(&c.Server.MaxBodyBytes, 1), def: "33554432",
		doc: "How large the body of a request to the server may be, in bytes. Larger ones are refused with status 413.",
	}, {
		key: "server.body_timeout", value: duration(&c.Server.BodyTimeout), def: "30s",
		doc: "How long the body of a request may take to arrive; each 64 KiB of it allow one second more. A slower client gets status 408 and is disconnected.",
	}, {
		key: "server.memory_budget_mib", value: whole(&c.Server.MemoryBudgetMiB, 0), def: "0",
		doc: "How much memory, in MiB, the bodies of all requests under way and the entries that they read (GET) may take; a body counts seven times its size, which is what decoding and storing it takes, an entry five times. Requests beyond it are refused with status 503 and Retry-After; one that is larger than all of it is taken alone. 0: a quarter of the memory that the system lets the program use.",
	}, {
		key: "server.max_connections", value: whole(&c.Server.MaxConnections, 0), def: "0",
		doc: "How many connections the server holds at once; more wait until one is closed. 0: three quarters of the files that the system lets the program open (ulimit -n).",
	}, {
		key: "server.shutdown_timeout", value: duration(&c.Server.ShutdownTimeout), def: "10s",
		doc: "How long the server waits for running requests when it is told to stop.",
	}, {
		key: "demo.pace", value: pause(&c.Demo.Pace), def: "0s",
		doc: "How long the built-in demo model waits before each word, to see what a slow model's stream is like. 0s: 20ms in a terminal, and not at all elsewhere.",
	}, {
		key: "prompts.dir", value: path(&c.Prompts.Dir, home, true), def: "",
		doc: "A folder whose files replace the built-in prompts of the same names. Empty: the built-in ones.",
	}, {
		key: "workflows.dir", value: path(&c.Workflows.Dir, home, true), def: "workflows",
		doc: "The folder with the workflows: its files *.yaml and *.yml, one workflow each, but not those in folders below it. It need not be there. Empty: none are read. A workflow is read anew whenever it is named, so that a change counts for the next run.",
	}, {
		key: "tools.allow", value: patternList(&c.Tools.Allow), def: "fs.read, fs.list, fs.search, conversation.search",
		doc: "The tools that models may call without asking. Where patterns of several lists match a tool, tools.deny counts before tools.ask, and that before tools.allow. In the file, a pattern that begins with * stands in quotes.",
	}, {
		key: "tools.ask", value: patternList(&c.Tools.Ask), def: "",
		doc: "The tools of which each call waits until a person allows or denies it.",
	}, {
		key: "tools.deny", value: patternList(&c.Tools.Deny), def: "",
		doc: "The tools that models may not call; they are not told of them.",
	}, {
		key: "tools.otherwise", value: oneOf(&c.Tools.Otherwise, "ask", "allow", "deny"), def: "ask",
		doc: "What is decided about a tool that none of the lists matches.",
	}, {
		key: "tools.ask_timeout", value: duration(&c.Tools.AskTimeout), def: "5m",
		doc: "How long a call waits for a person's decision before it is denied.",
	}, {
		key: "tools.max_output_bytes", value: whole(&c.Tools.MaxOutputBytes, 1), def: "67108864",
		doc: "How large one output of a tool may be, in bytes. A larger one is not kept: the call fails, and the model is told to ask for less.",
	}, {
		key: "tools.deny_files", value: globList(&c.Tools.DenyFiles), def: strings.Join(defaultSecrets, ", "),
		doc: "Files of @project that no tool reads, lists or writes, because they usually hold secrets: patterns of names, as fs.search takes them. One that matches a folder covers what is in it; one that begins with ! makes an exception from those before it. A list given here replaces the default. The store's own files and objects are out of reach in any case.",
	}, {
		key: "tools.project_dir", value: path(&c.Tools.ProjectDir, home, true), def: "",
		doc: "The folder that models may read as @project, in the conversations of the program's own project (setting project). Nothing outside of it can be read, whatever a path or a link says. Empty: there is no @project.",
	}}
}
