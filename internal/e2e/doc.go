// Package e2e tests the whole program: the real binary as a process of its own, between a client and upstreams that are
// not written by this project. It contains tests and benchmarks only.
//
// The upstreams are a mock of model providers from npm (the folder CONTINUO_NPM_DIR has its node_modules; make npm
// fills .npm), a program that breaks streams in ways that the mock does not (CONTINUO_CLIENTS, or ../shared/clients
// beside the checkout), and a script of raw bytes that is part of the tests. Tests whose programs are missing on a
// machine are skipped, with a message.
//
// Most tests wait for other processes, so all run in parallel, except for those whose timeouts are so short that the
// load of the others could exceed them (TestStalls, TestBrokenBytes, TestForeignFaults, TestLongRetryAfter and
// TestPausedReplicaWritesNothingWhenItWakes): these run first, one after another.
//
// The kill tests (kill*_test.go) kill or stop programs with SIGKILL and SIGSTOP at random points while they stream, and
// compare what clients received before with what the log and the streams contain after. They need Linux and are skipped
// in short tests; CONTINUO_LONG=1 kills many times as often (the calls of rounds have both numbers), CONTINUO_SEED
// repeats the scripts of a run, though not its timing.
//
// The runs' kill tests (run_kill*_test.go) do the same while runs of workflows are in progress, on SQLite and on
// replicas over PostgreSQL. The MCP server is tested with the public conformance suite and its inspector
// (mcp_*_test.go), and a CLI agent from npm works on tasks (task_agent*_test.go). The crews' tests (crew_*_test.go)
// kill programs while crews speak, let agents misbehave, and have two CLI agents from npm talk over ACP.
//
// The benchmarks measure Continuo's overhead:
//
//	go test -run '^$' -bench Overhead -benchtime 10x ./internal/e2e
//	CONTINUO_STREAMS=1000 go test -run '^$' -bench Streams -benchtime 1x ./internal/e2e
package e2e
