package recallbench

import (
	"context"
	"os"
	"reflect"
	"testing"

	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestPostgresGivesTheSameFigures: the contexts and the searches of both stores hold the same evidence.
func TestPostgresGivesTheSameFigures(t *testing.T) {
	server := pgtest.Shared(t)
	open := Open(func(ctx context.Context) (maintenance.Store, error) {
		return postgres.Open(ctx, server.Database(t), postgres.Options{})
	})
	for _, name := range []string{"locomo.jsonl.gz", "beam.jsonl.gz"} {
		conversations := dataFile(t, name)
		if os.Getenv("CONTINUO_LONG") == "" {
			conversations = conversations[:1]
			conversations[0].Questions = conversations[0].Questions[:min(20, len(conversations[0].Questions))]
		}
		measured, searched := map[string][]Result{}, map[string]Result{}
		for system, open := range map[string]Open{"sqlite": nil, "postgres": open} {
			var err error
			if measured[system], err = Measure(t.Context(), conversations, Options{Settings: []Setting{{Tokens: 2_000}, {View: "continuity"}}, Open: open}); err != nil {
				t.Fatal(err)
			}
			found, err := MeasureSearch(t.Context(), conversations, SearchOptions{Matches: 20, Open: open})
			if err != nil {
				t.Fatal(err)
			}
			searched[system] = found.Result
			recall, full := measured[system][0][""].Means()
			t.Logf("%s %s: %.3f / %.3f", name, system, recall, full)
		}
		if !reflect.DeepEqual(measured["sqlite"], measured["postgres"]) || !reflect.DeepEqual(searched["sqlite"], searched["postgres"]) {
			t.Errorf("%s: the stores differ", name)
		}
	}
}
