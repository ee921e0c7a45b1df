package main

import (
	"fmt"
	"runtime"
)

// row is one line of the table.
type row struct {
	work  string // names the row, also when ratios are checked
	dir   string // of the package
	bench string // the benchmark and its case, without "Benchmark"
	unit  string // of the figure that is shown
	ratio string // unit of the ratio to the bare engine, "" if there is none
	than  string // what the ratio compares with
	time  string // -benchtime
	goal  string // as the table shows it
	limit limit  // the goal, in numbers; the zero value has none
	short bool   // run in CI as well
	cpus  int    // how many processors the benchmark and its programs have, 0 for all
	env   []string
}

// limit is a goal: what a unit may be at most, or at least.
type limit struct {
	unit     string
	most     float64
	least    float64
	compared bool
}

func atMost(unit string, value float64) limit { return limit{unit: unit, most: value, compared: true} }

func atLeast(unit string, value float64) limit {
	return limit{unit: unit, least: value, compared: true}
}

// verdict says whether the goal is met.
func (r row) verdict(measured figures) string {
	value, found := measured.of(r, r.limit.unit)
	switch {
	case !r.limit.compared || !found:
		return ""
	case r.limit.most > 0 && value.best <= r.limit.most, r.limit.least > 0 && value.best >= r.limit.least:
		return "met"
	default:
		return "missed"
	}
}

// missing says why there is no figure.
func (r row) missing() string {
	if r.cpus > runtime.NumCPU() {
		return fmt.Sprintf("it needs %d processors", r.cpus)
	}
	return r.bench + " reports no " + r.unit
}

// shown writes a figure with its unit.
func (r row) shown(value float64) string {
	switch r.unit {
	case "ns/op":
		if value >= 1e6 {
			return fmt.Sprintf("%.2f ms", value/1e6)
		}
		return fmt.Sprintf("%.1f µs", value/1e3)
	case "MB/s":
		return fmt.Sprintf("%.0f MB/s", value)
	}
	number := fmt.Sprintf("%.3g", value)
	if value >= 100 {
		number = fmt.Sprintf("%.0f", value)
	}
	return number + " " + r.unit
}

const (
	sqliteDir   = "./store/sqlite"
	postgresDir = "./store/postgres"
	programDir  = "./internal/e2e"
	windowDir   = "./internal/properties"
	matchDir    = "./gateway/match"
	tokenDir    = "./token"
	searchDir   = "./fulltext/index"
	planDir     = "./window"
	renderDir   = "./render"
)

var rows = []row{
	{work: "a window of 80 messages, SQLite, nothing in memory", dir: windowDir, bench: "Window80/sqlite/1000", unit: "cold-us", ratio: "cold-x", than: "times bare SQLite", time: "500x", goal: "≤ 300 µs", limit: atMost("cold-us", 300), short: true},
	{work: "a window of 80 messages, SQLite, of 100 000 entries", dir: windowDir, bench: "Window80/sqlite/100000", unit: "cold-us", ratio: "x_1000", than: "times that of 1 000 entries", time: "500x", goal: "≤ 1.1 times that of 1 000", limit: atMost("x_1000", 1.1)},
	{work: "a window of 80 messages, SQLite, a conversation in use", dir: windowDir, bench: "Window80/sqlite/100000", unit: "used-us", ratio: "used-x", than: "times bare SQLite", time: "500x", goal: "≤ 60 µs", limit: atMost("used-us", 60)},
	{work: "a window of 80 messages, PostgreSQL, nothing in memory", dir: windowDir, bench: "Window80/postgresql/100000", unit: "cold-us", ratio: "cold-x", than: "times bare PostgreSQL", time: "500x", goal: "≤ 600 µs", limit: atMost("cold-us", 600)},
	{work: "a window of 80 messages, PostgreSQL, a conversation in use", dir: windowDir, bench: "Window80/postgresql/100000", unit: "used-us", ratio: "used-x", than: "times bare PostgreSQL", time: "500x", goal: "≤ 250 µs", limit: atMost("used-us", 250)},
	{work: "durable appends, 1 conversation, SQLite", dir: sqliteDir, bench: "Append/log/writers=1/conversations=1", unit: "ops/s", ratio: "x_bare", than: "of bare SQLite", time: "2000x", goal: "≥ 0.85 of bare", limit: atLeast("x_bare", 0.85), short: true},
	{work: "durable appends, 64 conversations, SQLite", dir: sqliteDir, bench: "Append/log/writers=64/conversations=64", unit: "ops/s", ratio: "x_bare", than: "of bare SQLite", time: "2000x", goal: "≥ 0.6 of bare group commit", limit: atLeast("x_bare", 0.6), short: true},
	{work: "durable appends, 1 conversation, PostgreSQL", dir: postgresDir, bench: "Append/partitions=0/writers=1", unit: "appends/s", ratio: "x_bare", than: "of bare PostgreSQL", time: "1000x"},
	{work: "durable appends, 64 conversations, PostgreSQL", dir: postgresDir, bench: "Append/partitions=0/writers=64", unit: "appends/s", ratio: "x_bare", than: "of 64 connections of bare PostgreSQL", time: "1000x", goal: "≥ 0.8 of bare", limit: atLeast("x_bare", 0.8)},
	{work: "bytes written by a durable append, SQLite", dir: sqliteDir, bench: "Append/log/writers=1/conversations=1", unit: "KB/op", time: "2000x", goal: "≤ 14 KB", limit: atMost("KB/op", 14)},
	{work: "a window of 80 messages over entries in memory", dir: planDir, bench: "Build/80-messages/next", unit: "ns/op", time: "2000x", goal: "≤ 30 µs", limit: atMost("ns/op", 30e3)},
	{work: "the body of such a request", dir: renderDir, bench: "OpenAIChatRequest", unit: "ns/op", time: "2000x", goal: "≤ 50 µs", limit: atMost("ns/op", 50e3)},
	{work: "tokens counted, English conversations", dir: tokenDir, bench: "CountData/o200k_base/beam.jsonl.gz", unit: "MB/s", time: "5x", goal: "≥ 80 MB/s", limit: atLeast("MB/s", 80)},
	{work: "tokens counted, coding agents", dir: tokenDir, bench: "CountData/o200k_base/coding-agents.jsonl.gz", unit: "MB/s", time: "5x", goal: "≥ 80 MB/s", limit: atLeast("MB/s", 80)},
	{work: "tokens counted, chat rooms", dir: tokenDir, bench: "CountData/o200k_base/irc.jsonl.gz", unit: "MB/s", time: "5x", goal: "≥ 80 MB/s", limit: atLeast("MB/s", 80)},
	{work: "tokens counted, many languages", dir: tokenDir, bench: "CountData/o200k_base/multilingual.jsonl.gz", unit: "MB/s", time: "5x", goal: "≥ 80 MB/s", limit: atLeast("MB/s", 80)},
	{work: "tokens counted, wire bodies with images in base64", dir: tokenDir, bench: "CountData/o200k_base/wire-openai.jsonl.gz", unit: "MB/s", time: "5x", goal: "≥ 80 MB/s", limit: atLeast("MB/s", 80)},
	{work: "search in 10 000 entries, an absent word", dir: searchDir, bench: "Search/10000/none/conversation", unit: "ns/op", time: "50x", goal: "≤ 10 ms", limit: atMost("ns/op", 10e6)},
	{work: "the same, a word of every entry", dir: searchDir, bench: "Search/10000/common/conversation", unit: "ns/op", time: "50x", goal: "≤ 10 ms", limit: atMost("ns/op", 10e6)},
	{work: "the same, a phrase of a few entries", dir: searchDir, bench: "Search/10000/phrase/conversation", unit: "ns/op", time: "50x", goal: "≤ 10 ms", limit: atMost("ns/op", 10e6)},
	{work: "the same, a phrase of many entries", dir: searchDir, bench: "Search/10000/common_phrase/conversation", unit: "ns/op", time: "50x", goal: "≤ 10 ms", limit: atMost("ns/op", 10e6)},
	{work: "the same, an absent phrase of common words", dir: searchDir, bench: "Search/10000/absent_phrase/conversation", unit: "ns/op", time: "50x", goal: "≤ 10 ms", limit: atMost("ns/op", 10e6)},
	{work: "first token added to a proxy, new conversation, SQLite", dir: programDir, bench: "Overhead/sqlite/pace=0s", unit: "added-us/new", ratio: "first-x/new", than: "times the upstream alone", time: "100x", goal: "≤ 600 µs", limit: atMost("added-us/new", 600)},
	{work: "the same, a conversation in use", dir: programDir, bench: "Overhead/sqlite/pace=0s", unit: "added-us/same", ratio: "first-x/same", than: "times the upstream alone", time: "100x", goal: "≤ 600 µs", limit: atMost("added-us/same", 600)},
	{work: "the same, 10 000 messages", dir: programDir, bench: "Overhead/sqlite/pace=0s", unit: "added-us/long", ratio: "first-x/long", than: "times the upstream alone", time: "100x", goal: "≤ 600 µs", limit: atMost("added-us/long", 600)},
	{work: "first token added to a proxy, new conversation, PostgreSQL", dir: programDir, bench: "Overhead/postgresql/pace=0s", unit: "added-us/new", ratio: "first-x/new", than: "times the upstream alone", time: "100x", goal: "≤ 1500 µs", limit: atMost("added-us/new", 1500)},
	{work: "the same, a conversation in use, PostgreSQL", dir: programDir, bench: "Overhead/postgresql/pace=0s", unit: "added-us/same", ratio: "first-x/same", than: "times the upstream alone", time: "100x", goal: "≤ 1500 µs", limit: atMost("added-us/same", 1500)},
	{work: "turns, 1 client, SQLite", dir: programDir, bench: "Turns/sqlite/clients=1", unit: "turns/s", ratio: "x_proxy", than: "of a bare proxy", time: "20x", goal: "≥ 900 /s", limit: atLeast("turns/s", 900), short: true},
	{work: "turns, 64 clients, SQLite", dir: programDir, bench: "Turns/sqlite/clients=64", unit: "turns/s", ratio: "x_proxy", than: "of a bare proxy", time: "20x", goal: "≥ 3000 /s", limit: atLeast("turns/s", 3000), short: true},
	{work: "processor time of a turn, 64 clients, SQLite", dir: programDir, bench: "Turns/sqlite/clients=64", unit: "cpu-us/turn", time: "20x", goal: "≤ 600 µs", limit: atMost("cpu-us/turn", 600)},
	{work: "turns, 64 clients, PostgreSQL", dir: programDir, bench: "Turns/postgresql/clients=64", unit: "turns/s", ratio: "x_proxy", than: "of a bare proxy", time: "20x"},
	{work: "turns, 64 clients, SQLite, one processor", dir: programDir, bench: "Turns/sqlite/clients=64", unit: "turns/s", ratio: "x_proxy", than: "of a bare proxy", time: "20x", cpus: 1},
	{work: "turns, 64 clients, SQLite, two processors", dir: programDir, bench: "Turns/sqlite/clients=64", unit: "turns/s", ratio: "x_proxy", than: "of a bare proxy", time: "20x", cpus: 2},
	{work: "turns, 64 clients, SQLite, four processors", dir: programDir, bench: "Turns/sqlite/clients=64", unit: "turns/s", ratio: "x_proxy", than: "of a bare proxy", time: "20x", cpus: 4},
	{work: "durable appends, 64 conversations, SQLite, one processor", dir: sqliteDir, bench: "Append/log/writers=64/conversations=64", unit: "ops/s", ratio: "x_bare", than: "of bare SQLite", time: "2000x", cpus: 1},
	{work: "memory of 1 000 open streams", dir: programDir, bench: "Streams", unit: "rss-KiB/stream", ratio: "rss-x-proxy", than: "times that of a bare proxy", time: "1x", goal: "≤ 80 KiB", limit: atMost("rss-KiB/stream", 80), env: []string{"CONTINUO_STREAMS=1000"}},
	{work: "processor time of a streamed token", dir: programDir, bench: "Streams", unit: "cpu-us/token", ratio: "cpu-x-proxy", than: "times that of a bare proxy", time: "1x", goal: "≤ 40 µs", limit: atMost("cpu-us/token", 40), env: []string{"CONTINUO_STREAMS=1000"}},
	{work: "first byte added to the upstream by the gateway, forwarding, SQLite", dir: programDir, bench: "Gateway/sqlite", unit: "over-us/forward", ratio: "x-proxy/forward", than: "times what a proxy adds", time: "100x", goal: "≤ 600 µs", limit: atMost("over-us/forward", 600)},
	{work: "the same, compared with what a bare proxy adds", dir: programDir, bench: "Gateway/sqlite", unit: "x-proxy/forward", time: "100x", goal: "≤ 2 times", limit: atMost("x-proxy/forward", 2)},
	{work: "the same, with a view", dir: programDir, bench: "Gateway/sqlite", unit: "over-us/view", ratio: "x-proxy/view", than: "times what a proxy adds", time: "100x"},
	{work: "first byte added by the gateway, forwarding, PostgreSQL", dir: programDir, bench: "Gateway/postgresql", unit: "over-us/forward", ratio: "x-proxy/forward", than: "times what a proxy adds", time: "100x", goal: "≤ 1500 µs", limit: atMost("over-us/forward", 1500)},
	{work: "an event that the gateway forwards", dir: programDir, bench: "Gateway/sqlite", unit: "token-us/forward", ratio: "token-x/forward", than: "times the upstream alone", time: "100x"},
	{work: "requests through the gateway, 16 clients", dir: programDir, bench: "Gateway/sqlite", unit: "requests/s/forward", ratio: "rate-x/forward", than: "of a bare proxy", time: "100x"},
	{work: "memory of 1 000 open streams of the gateway", dir: programDir, bench: "GatewayStreams", unit: "rss-KiB/stream", ratio: "rss-x-proxy", than: "times that of a bare proxy", time: "1x", goal: "≤ 100 KiB", limit: atMost("rss-KiB/stream", 100), env: []string{"CONTINUO_STREAMS=1000"}},
	{work: "finding the conversation of a history of 5 000 messages", dir: matchDir, bench: "Match/continued", unit: "ns/op", time: "200x", goal: "≤ 1 ms", limit: atMost("ns/op", 1e6)},
	{work: "start until ready", dir: programDir, bench: "Ready", unit: "ready-ms", time: "20x", goal: "≤ 40 ms", limit: atMost("ready-ms", 40)},
	{work: "size of the program", dir: programDir, bench: "Ready", unit: "binary-MB", time: "20x", goal: "≤ 35 MB", limit: atMost("binary-MB", 35)},
}
