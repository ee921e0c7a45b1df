package maintenance_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

// addRunEvents has the conversation's log tell of a run: an entry for each event.
func (p *fixture) addRunEvents(conversation, run string, kinds ...continuo.RunEventKind) {
	p.Helper()
	var entries []continuo.Entry
	for _, kind := range kinds {
		entries = append(entries, continuo.Entry{
			Role: continuo.System, Hidden: true, Content: continuo.Text("about the run"),
			RunID: run, WorkflowID: "report", RunEvent: &continuo.RunEvent{Kind: kind},
		})
	}
	_, err := p.log.Append(p.Context(), conversation, entries, continuo.AppendOptions{})
	p.must(err)
}

// running is a conversation with a run that waits (from entry 5 on), one that has ended, and one that goes on.
func (p *fixture) running() continuo.Conversation {
	p.Helper()
	conversation := p.addConversation(1)
	p.addRunEvents(conversation.ID, "run_a", continuo.RunBegan, continuo.RunNodeBegan)
	p.addRunEvents(conversation.ID, "run_a", continuo.RunNodeAsked, continuo.RunEventWaiting)
	p.addRunEvents(conversation.ID, "run_b", continuo.RunBegan, continuo.RunEventFinished)
	p.addRunEvents(conversation.ID, "run_c", continuo.RunBegan)
	return p.now(conversation.ID)
}

// restored archives a conversation and brings it back.
func (p *fixture) restored(id string) {
	p.Helper()
	_, err := p.archivist().Archive(p.Context(), id)
	p.must(err)
	_, err = p.archivist().Restore(p.Context(), id)
	p.must(err)
}

// TestRunsAreIndexedAsTheCheckFoldsThem: whatever a run tells, in every store.
func TestRunsAreIndexedAsTheCheckFoldsThem(t *testing.T) {
	for name, open := range map[string]func(*testing.T) maintenance.Store{
		"memory": func(*testing.T) maintenance.Store { return storetest.NewMemory() }, "file": openFile, "database": openDatabase,
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t, open(t))
			id := p.running().ID
			p.addRunEvents(id, "unknown", continuo.RunEventWaiting, continuo.RunEventFinished)
			p.addRunEvents(id, "run_b", continuo.RunResumed, continuo.RunEventCancelled) // it is over
			p.addRunEvents(id, "run_a", continuo.RunBegan, continuo.RunResumed, continuo.RunEventFailed, continuo.RunResumed, continuo.RunEventStopped, "of a later version")
			p.addRunEvents(id, "unknown", continuo.RunBegan, continuo.RunEventCancelled, continuo.RunBegan, continuo.RunNodeFinished)
			for i := range 300 { // more than one page of the index
				p.addRunEvents(id, fmt.Sprintf("run_%03d", i), continuo.RunBegan)
			}
			fork := p.fork(id, 12)
			p.addRunEvents(fork.ID, "run_a", continuo.RunEventFinished) // the fork has no such run
			p.addRunEvents(fork.ID, "run_d", continuo.RunBegan)
			_, err := p.log.Redact(t.Context(), p.now(id), 5, 9, "a wish")
			p.must(err)
			if _, found := p.checks(); len(found) > 0 {
				t.Errorf("%+v", found)
			}
			p.restored(id)
			if _, found := p.checks(); len(found) > 0 {
				t.Errorf("restored: %+v", found)
			}
			_, err = p.archivist().Archive(t.Context(), id)
			p.must(err)
			if _, found := p.checks(); len(found) > 0 {
				t.Errorf("archived: %+v", found)
			}
			p.must(p.log.Delete(t.Context(), id))
			if _, found := p.checks(); len(found) > 0 {
				t.Errorf("deleted, but for the fork: %+v", found)
			}
		})
	}
}

// misled is a store whose index of runs is another one than that of the entries.
type misled struct {
	maintenance.Store
	mislead func([]continuo.Run) []continuo.Run
}

func (m misled) Runs(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	found, err := m.Store.Runs(ctx, query)
	return m.mislead(found), err
}

func repairing(c *maintenance.Checker) { c.Repair = true }

// TestAWrongIndexOfRunsIsFound bends one thing of it at a time, and expects one finding that names it.
func TestAWrongIndexOfRunsIsFound(t *testing.T) {
	change := func(id string, change func(*continuo.Run)) func([]continuo.Run) []continuo.Run {
		return func(found []continuo.Run) []continuo.Run {
			for i := range found {
				if found[i].ID == id {
					change(&found[i])
				}
			}
			return found
		}
	}
	for name, c := range map[string]struct {
		mislead func([]continuo.Run) []continuo.Run
		seq     int64
		words   string
	}{
		"a lost run": {func(found []continuo.Run) []continuo.Run {
			return slices.DeleteFunc(found, func(r continuo.Run) bool { return r.ID == "run_a" })
		}, 5, "the run run_a, which is waiting, is missing"},
		"a run too many": {func(found []continuo.Run) []continuo.Run {
			return append(found, continuo.Run{ID: "run_x", StartedAt: time.Unix(1, 0)})
		}, 0, "has the run run_x, which no entry records"},
		"its state":         {change("run_a", func(r *continuo.Run) { r.State = continuo.RunRunning }), 5, "run_a with state running instead of waiting"},
		"one that is over":  {change("run_b", func(r *continuo.Run) { r.EndedAt = time.Time{} }), 9, "run_b with ended_at none instead of 2"},
		"one that goes on":  {change("run_c", func(r *continuo.Run) { r.EndedAt = time.Unix(9, 0) }), 11, "ended_at 1970-01-01T00:00:09Z instead of none"},
		"where it began":    {change("run_a", func(r *continuo.Run) { r.FirstSeq++ }), 5, "first_seq 6 instead of 5"},
		"when it began":     {change("run_a", func(r *continuo.Run) { r.StartedAt = r.StartedAt.Add(-1) }), 5, "run_a with started_at "},
		"its newest event":  {change("run_a", func(r *continuo.Run) { r.UpdatedAt = r.UpdatedAt.Add(1) }), 5, "run_a with updated_at "},
		"another workflow":  {change("run_a", func(r *continuo.Run) { r.WorkflowID = "rep ort" }), 5, `workflow_id "rep ort" instead of "report"`},
		"two things of one": {change("run_a", func(r *continuo.Run) { r.State, r.FirstSeq = continuo.RunFailed, 1 }), 5, "state failed instead of waiting, first_seq 1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t, storetest.NewMemory())
			id := p.running().ID
			p.store = misled{p.store, c.mislead}
			for _, repair := range []bool{false, true} {
				_, found := p.checks(func(c *maintenance.Checker) { c.Repair = repair })
				if len(found) != 1 || found[0].Kind != maintenance.BadIndex || found[0].ConversationID != id || found[0].Seq != c.seq || !strings.Contains(found[0].What, c.words) {
					t.Errorf("found %+v, want one of entry %d with %q", found, c.seq, c.words)
				}
				if len(found) == 1 && (found[0].Repaired != repair || !strings.Contains(found[0].Fix, "--repair")) {
					t.Errorf("repaired without asking, or without a fix: %+v", found[0])
				}
			}
		})
	}
}

// TestLostEntriesAreNotToBeForgottenByTheIndex: where entries are missing, it may be the index that is right.
func TestLostEntriesAreNotToBeForgottenByTheIndex(t *testing.T) {
	for name, gone := range map[string]int64{"a gap": 8, "the end": 11} {
		p := newFixture(t, storetest.NewMemory())
		p.running()
		p.store = bent{p.store, func(records []maintenance.Record) []maintenance.Record {
			return slices.DeleteFunc(records, func(r maintenance.Record) bool { return r.Entry != nil && r.Entry.Seq == gone })
		}}
		_, found := p.checks()
		i := slices.IndexFunc(found, func(f maintenance.Finding) bool { return f.Kind == maintenance.BadIndex })
		if i < 0 || !strings.Contains(found[i].Fix, "backup") || strings.Contains(found[i].Fix, "--repair") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// restless is a store in which something happens just before runs are listed.
type restless struct {
	maintenance.Store
	happens func()
}

func (r restless) Runs(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	r.happens()
	return r.Store.Runs(ctx, query)
}

// TestWhatHappensMeanwhileIsNotAFinding: the index is read after the entries, and may know of more.
func TestWhatHappensMeanwhileIsNotAFinding(t *testing.T) {
	times := func(n int, happens func()) func() {
		return func() {
			if n--; n >= 0 {
				happens()
			}
		}
	}
	for name, meanwhile := range map[string]func(p *fixture, id string) func(){
		"a run goes on": func(p *fixture, id string) func() {
			return times(3, func() { p.addRunEvents(id, "run_c", continuo.RunEventWaiting, continuo.RunResumed) })
		},
		"a run begins": func(p *fixture, id string) func() {
			n := 0
			return times(2, func() { n++; p.addRunEvents(id, fmt.Sprint("run_new", n), continuo.RunBegan) })
		},
		"runs never rest": func(p *fixture, id string) func() {
			return func() { p.addRunEvents(id, "run_c", continuo.RunEventWaiting, continuo.RunResumed) }
		},
		"it is archived": func(p *fixture, id string) func() {
			return times(1, func() {
				_, err := p.archivist().Archive(p.Context(), id)
				p.must(err)
			})
		},
		"it is deleted": func(p *fixture, id string) func() {
			return times(1, func() { p.must(p.log.Delete(p.Context(), id)) })
		},
		"it is deleted, but for a fork": func(p *fixture, id string) func() {
			p.fork(id, 10)
			return times(1, func() { p.must(p.log.Delete(p.Context(), id)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t, storetest.NewMemory())
			happens, sound := meanwhile(p, p.running().ID), p.store
			p.store = restless{sound, happens}
			noObjects := func(c *maintenance.Checker) { c.Objects = nil }
			if _, found := p.checks(noObjects); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestARunThatEndsMeanwhileHidesNoOther: what is wrong is told once the conversation rests.
func TestARunThatEndsMeanwhileHidesNoOther(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	id, sound := p.running().ID, p.store
	ends := true
	p.store = misled{restless{sound, func() {
		if ends {
			ends = false
			p.addRunEvents(id, "run_c", continuo.RunEventFinished)
		}
	}}, func(found []continuo.Run) []continuo.Run {
		return slices.DeleteFunc(found, func(r continuo.Run) bool { return r.ID == "run_a" })
	}}
	if _, found := p.checks(); len(found) != 1 || !strings.Contains(found[0].What, "run_a") {
		t.Errorf("%+v", found)
	}
}

// TestForgedRowsOfRunsAreFoundAndRepaired writes to the table behind the store's back, and then does what
// the findings say.
func TestForgedRowsOfRunsAreFoundAndRepaired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	p := newFixture(t, store)
	conversation := p.running()
	file, err := sql.Open("sqlite", path)
	p.must(err)
	defer file.Close()
	forge := func(statement string) {
		t.Helper()
		_, err := file.ExecContext(t.Context(), statement)
		p.must(err)
	}
	forged := `INSERT INTO runs SELECT conversation_id, 'run_x', project_id, 'w', '', 'running', 1, started_at, updated_at, NULL FROM runs WHERE id = 'run_b'`
	for _, c := range []struct {
		statement string
		want      []string
	}{
		{`DELETE FROM runs WHERE id = 'run_a'`, []string{"run_a, which is waiting, is missing"}},
		{`UPDATE runs SET state = 'running', ended_at = NULL WHERE id = 'run_b'`, []string{"state running instead of finished, ended_at none"}},
		{`UPDATE runs SET project_id = 'other' WHERE id = 'run_c'`, []string{"run_c, which is running, is missing"}},
		{`UPDATE runs SET first_seq = 3, key_id = 'w'`, []string{"run_a with ", "run_b with ", "run_c with "}},
		{`UPDATE runs SET started_at = 'yesterday' WHERE id = 'run_a'`, []string{"run run_a: "}},
		{forged, []string{"run_x, which no entry records"}},
	} {
		forge(c.statement)
		_, found := p.checks()
		if len(found) != len(c.want) {
			t.Errorf("%s: found %+v, want %q", c.statement, found, c.want)
			continue
		}
		for i, words := range c.want {
			if !strings.Contains(found[i].What, words) || !strings.Contains(found[i].Fix, "--repair") {
				t.Errorf("%s: found %+v, want %q", c.statement, found[i], words)
			}
		}
		if _, found := p.checks(repairing); len(found) != len(c.want) || !found[0].Repaired {
			t.Errorf("%s, repaired: %+v", c.statement, found)
		}
		if _, found := p.checks(); len(found) > 0 {
			t.Errorf("%s, after it was repaired: %+v", c.statement, found)
		}
	}
	keep := `CREATE TABLE kept AS SELECT * FROM runs`
	forge(keep)
	_, err = p.archivist().Archive(t.Context(), conversation.ID)
	p.must(err)
	forge(`INSERT INTO runs SELECT * FROM kept WHERE id = 'run_b'; DROP TABLE kept`)
	if _, found := p.checks(); len(found) != 1 || !strings.Contains(found[0].What, "archived or deleted") || !strings.Contains(found[0].Fix, "--repair") {
		t.Errorf("a row of an archived conversation: %+v", found)
	}
	p.checks(repairing)
	if _, found := p.checks(); len(found) > 0 {
		t.Errorf("a row of an archived conversation, after it was repaired: %+v", found)
	}
	_, err = p.archivist().Restore(t.Context(), conversation.ID)
	p.must(err)
	if _, found := p.checks(); len(found) > 0 {
		t.Errorf("restored: %+v", found)
	}
}
