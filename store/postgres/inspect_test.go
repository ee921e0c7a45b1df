package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
)

func TestInspectDescribesADatabaseAndChangesNothing(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	found, err := Inspect(t.Context(), url)
	if err != nil || found.Made || found.Server == "" || found.Bytes == 0 || found.Encoding != "UTF8" || found.Standby || !found.Listens || found.MaxConnections == 0 || found.Connections == 0 {
		t.Errorf("an empty database: %+v, %v", found, err)
	}
	if found.Clock.Abs() > time.Minute {
		t.Errorf("the clock of this very machine is %v ahead", found.Clock)
	}
	if found, err = Inspect(t.Context(), url); err != nil || found.Made {
		t.Errorf("the first look made something: %+v, %v", found, err)
	}

	store := openAt(t, url, Options{Partitions: 4})
	defer store.Close()
	newConversation(t, store, "conv_1", 5)
	newConversation(t, store, "conv_2", 7)
	found, err = Inspect(t.Context(), url)
	if err != nil || !found.Made || found.Schema == 0 || found.Partitions != 4 || found.Conversations != 2 || found.Entries != 12 {
		t.Errorf("two conversations: %+v, %v", found, err)
	}
}

func TestInspectReportsProblems(t *testing.T) {
	_, err := Inspect(t.Context(), "postgres://me:secret@127.0.0.1:1/nothing")
	if !errors.Is(err, continuo.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody listens: %v", err)
	}
	url := pgtest.Shared(t).URL("no_such_database")
	if _, err := Inspect(t.Context(), url); err == nil || !strings.Contains(err.Error(), "no such database") {
		t.Errorf("no database: %v", err)
	}
}
