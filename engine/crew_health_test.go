package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// loggedTo has an engine log as text.
func loggedTo(w *lockedWriter) func(*engine.Options) {
	return func(o *engine.Options) { o.Logger = slog.New(slog.NewTextHandler(w, nil)) }
}

// countedPrograms lists the metrics of the roles' programs: those that run, those that ended by reason, and the pauses.
func countedPrograms(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	running, pauses, ends := 0.0, 0.0, []string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "continuo_crew_processes":
				running = metric.GetGauge().GetValue()
			case "continuo_crew_roles_paused_total":
				pauses = metric.GetCounter().GetValue()
			case "continuo_crew_processes_ended_total":
				ends = append(ends, fmt.Sprintf("%v %s", metric.GetCounter().GetValue(), metric.GetLabel()[0].GetValue()))
			}
		}
	}
	slices.Sort(ends)
	return fmt.Sprintf("%v running; ended: %s; pauses: %v", running, strings.Join(ends, ", "), pauses)
}

// watchedPrograms is a newCrewEngine that checks the roles' programs every ten seconds, by the whole watch of the engine or by
// that of the roles alone, and ended when they were idle so long (0: the default). To be made in a bubble.
type watchedPrograms struct {
	*testEngine
	scripted *scriptedRoles
	logged   *lockedWriter
	registry *prometheus.Registry
}

func newWatchedPrograms(t *testing.T, whole bool, idle time.Duration) *watchedPrograms {
	t.Helper()
	h := &watchedPrograms{scripted: &scriptedRoles{answer: answerTimes(1)}, logged: &lockedWriter{}, registry: prometheus.NewRegistry()}
	h.testEngine = newMeasuredCrewEngine(t, continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), h.scripted, newCrewSource(t, threeRoleCrew), engine.NewMetrics(h.registry), func(o *engine.Options) {
		loggedTo(h.logged)(o)
		o.CrewDefaults.Idle = idle
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if whole {
			h.Watch(ctx, 10*time.Second, time.Hour)
		} else {
			h.Crews.WatchRoles(ctx, 10*time.Second)
		}
	}()
	t.Cleanup(cancel)
	return h
}

// running says which roles' programs run.
func (h *watchedPrograms) running(t *testing.T) (names []string) {
	t.Helper()
	status, err := h.Crews.Status(t.Context(), testSession)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range status.Roles {
		if role.Running {
			names = append(names, role.Name)
		}
	}
	return names
}

func (h *watchedPrograms) want(t *testing.T, programs string, running ...string) {
	t.Helper()
	if got := countedPrograms(t, h.registry); got != programs {
		t.Errorf("counted: %s, want %s", got, programs)
	}
	if got := h.running(t); !slices.Equal(got, running) {
		t.Errorf("%q are running, want %q", got, running)
	}
}

// The program of a role that ends while nobody asks it is noticed, and started again for the role's next turn.
func TestAProgramThatEndsBetweenTurnsIsNoticed(t *testing.T) {
	for _, whole := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := newWatchedPrograms(t, whole, 0)
			sendMessage(t, h.testEngine, "Hello")
			awaitCycle(t, h.testEngine)
			time.Sleep(time.Minute)
			h.want(t, "2 running; ended: ; pauses: 0", "ann", "bob")
			h.scripted.openSessions[1].kill()
			time.Sleep(11 * time.Second)
			h.want(t, "1 running; ended: 1 exited; pauses: 0", "ann")
			if n := strings.Count(h.logged.String(), "msg=role_process_ended"); n != 1 || !strings.Contains(h.logged.String(), "role=bob") {
				t.Errorf("it was told %d times:\n%s", n, h.logged)
			}
			h.scripted.answer = answerTimes(1)
			sendMessage(t, h.testEngine, "More?")
			if status := awaitCycle(t, h.testEngine); status.Roles[1].Answers != 2 {
				t.Errorf("Bob stands %+v", status.Roles[1])
			}
			if strings.Contains(h.logged.String(), "msg=role_restarted") {
				t.Errorf("it was not forgotten:\n%s", h.logged)
			}
			h.want(t, "2 running; ended: 1 exited; pauses: 0", "ann", "bob")
			if err := h.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := countedPrograms(t, h.registry); got != "0 running; ended: 1 exited, 2 shutdown; pauses: 0" {
				t.Errorf("at its end: %s", got)
			}
		})
	}
}

// A program that nobody asks for half an hour is ended, without a word, and comes back when it is asked.
func TestAnIdleProgramIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newWatchedPrograms(t, true, 0)
		sendMessage(t, h.testEngine, "Hello")
		awaitCycle(t, h.testEngine)
		time.Sleep(29 * time.Minute)
		h.want(t, "2 running; ended: ; pauses: 0", "ann", "bob")
		time.Sleep(2 * time.Minute)
		h.want(t, "0 running; ended: 2 idle; pauses: 0")
		for _, one := range h.scripted.openSessions {
			if (fakeSession{one}).Alive() {
				t.Errorf("the program of %s goes on", one.name)
			}
		}
		if strings.Contains(h.logged.String(), "role_process_ended") {
			t.Errorf("it is taken for a fault:\n%s", h.logged)
		}
		h.scripted.answer = answerTimes(1)
		sendMessage(t, h.testEngine, "More?")
		awaitCycle(t, h.testEngine)
		h.want(t, "2 running; ended: 2 idle; pauses: 0", "ann", "bob")
	})
}

// A program that a turn uses is left alone, however long the turn takes.
func TestAProgramInUseIsNotStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newWatchedPrograms(t, false, time.Second)
		h.scripted.during = func(p rolePrompt) {
			if p.role == "loads" {
				time.Sleep(time.Minute)
			}
		}
		sendMessage(t, h.testEngine, "Hello")
		if status := awaitCycle(t, h.testEngine); status.Roles[0].Answers != 1 || status.Roles[0].Failed != "" {
			t.Errorf("Ann stands %+v", status.Roles[0])
		}
	})
}

// That a role is left alone is counted, and so is why its program was ended.
func TestPausesAndRestartsAreCounted(t *testing.T) {
	registry, scripted := prometheus.NewRegistry(), &scriptedRoles{answer: answerTimes(1)}
	e := newMeasuredCrewEngine(t, continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), scripted, newCrewSource(t, threeRoleCrew), engine.NewMetrics(registry), func(o *engine.Options) {
		o.CrewDefaults.Cooldown = time.Hour
	})
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	if _, err := e.Crews.Reset(t.Context(), testSession, ""); err != nil { // the sessions hold what the roles are not to see any more
		t.Fatal(err)
	}
	scripted.answer = answerTimes(1)
	sendMessage(t, e, "Anew.")
	awaitCycle(t, e)
	if got := countedPrograms(t, registry); got != "2 running; ended: 2 stale; pauses: 0" {
		t.Errorf("after a reset: %s", got)
	}
	for _, one := range scripted.openSessions {
		one.kill()
	}
	scripted.startError = func() error { return errors.New("no such program") }
	for range 3 {
		sendMessage(t, e, "And now?")
		awaitCycle(t, e)
	}
	if got := countedPrograms(t, registry); got != "0 running; ended: 2 exited, 2 stale; pauses: 2" {
		t.Errorf("after they ended: %s", got)
	}
}
