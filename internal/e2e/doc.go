// Package e2e tests the whole: the real program as a process of its own, between a client and upstreams
// that nobody of this project wrote. It holds tests and benchmarks only.
//
// The upstreams are a mock of model providers from npm (the folder CONTINUO_NPM_DIR has its node_modules;
// make npm fills .npm), a program that breaks streams in ways that the mock does not (CONTINUO_CLIENTS, or
// ../shared/clients beside the checkout), and a script of raw bytes that is part of the tests. What a
// machine does not have is skipped, and says so.
//
// The benchmarks measure what Continuo costs:
//
//	go test -run '^$' -bench Overhead -benchtime 10x ./internal/e2e
//	CONTINUO_STREAMS=1000 go test -run '^$' -bench Streams -benchtime 1x ./internal/e2e
package e2e
