// Package pgtest starts throwaway PostgreSQL clusters for tests: real ones, so that tests can kill them, restart them,
// and promote a standby. No setup is needed; the programs of an installed PostgreSQL (13 or newer) are enough, wherever
// its package put them. Without them a test is skipped, with a prominent message, or fails when CONTINUO_PG_REQUIRED=1
// says that the machine must have them.
//
// Most tests want [Shared]: one cluster per test binary, and a database of their own in it, which costs milliseconds:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		url := pgtest.Shared(t).Database(t)
//		…
//	}
//
// Tests that stop, kill or promote a server take one of their own with [Start].
//
// A cluster lives in one folder continuo-pg-*: data, log, settings, socket. The folder is made in the system's
// temporary folder, or, if the cluster need not be durable, in memory where Linux has enough of it (/dev/shm). Its
// server is a child of the test binary. On Linux the kernel stops it when the test binary ends in any way; elsewhere
// only an orderly end does. The folder that a killed test binary leaves is removed by the next start of a cluster.
//
// Pitfalls. A server is fast because it is not durable: unless Options.Durable is set, it does not wait for the disk,
// and without Replication it acknowledges commits before they are written, so that a killed server may lose the last
// ones. Every client that reaches the server is its superuser; over TCP that is every user of this machine. Methods
// that take a testing.TB end the test when they fail, so that they must be called in the goroutine of the test; the
// others are safe anywhere.
package pgtest
