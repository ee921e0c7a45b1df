package main

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

// crewScreen shows the progress of a cycle.
type crewScreen interface {
	// update shows a step of the cycle. It may wait for the person's decision on a call.
	update(ctx context.Context, progress engine.CrewProgress) error
	// tick updates what depends on the time.
	tick(now time.Time)
	// end finishes the output; status is the crew's final state.
	end(status *engine.CrewStatus)
}

// newCrewScreen chooses how a cycle is shown. Own is the message that the person has just sent.
func (t *crewChatSession) newCrewScreen(status *engine.CrewStatus, own string) crewScreen {
	if t.asJSON {
		return &crewJSON{t.app}
	}
	s := &crewTextScreen{crew: t, stream: &stream{chatSession: t.chatSession}, members: map[string]member{}, shown: map[int64]bool{}, own: own}
	edge := &margin{out: t.out}
	s.wrap = &term.Wrapper{Out: edge}
	if !t.plain {
		t.measure()
		s.wrap.Width = max(t.width-len(indentBy)-1, 20)
	}
	for i, role := range status.Roles {
		s.members[role.Name] = member{term.OneLine(role.DisplayName, 64), t.rolePaint(i)}
	}
	return s
}

// crewJSON writes lines of JSON.
type crewJSON struct{ *app }

func (j *crewJSON) update(_ context.Context, progress engine.CrewProgress) error {
	jsonLines(j.app, progress.Entry, progress.Status)
	return nil
}

func (j *crewJSON) tick(time.Time) {}

func (j *crewJSON) end(status *engine.CrewStatus) { j.jsonLine("end", "status", status) }

// indentBy is the indent of each line of a role's text, so that no line of it can be taken for a name.
const indentBy = "  "

// margin puts spaces before each line that is not empty.
type margin struct {
	out    io.Writer
	inLine bool
}

// Write is part of io.Writer.
func (m *margin) Write(text []byte) (int, error) {
	var moved bytes.Buffer
	for _, b := range text {
		if b != '\n' && !m.inLine {
			moved.WriteString(indentBy)
		}
		m.inLine = b != '\n'
		moved.WriteByte(b)
	}
	_, err := m.out.Write(moved.Bytes())
	return len(text), err
}
