package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// connect opens a connection that ends with the test.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = connection.Close(ctx) // the server may be gone
	})
	return connection
}

func execute(t testing.TB, url, statement string, args ...any) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func query[V any](t testing.TB, url, statement string, args ...any) (value V) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), statement, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// expect asks for one value.
func expect[V comparable](t testing.TB, url string, want V, statement string, args ...any) {
	t.Helper()
	if got := query[V](t, url, statement, args...); got != want {
		t.Errorf("%s: got %v, want %v", statement, got, want)
	}
}

// eventually waits for an answer that is true.
func eventually(t testing.TB, server *Server, what, question string) {
	t.Helper()
	if err := server.await(startTimeout, what, question); err != nil {
		t.Fatal(err)
	}
}
