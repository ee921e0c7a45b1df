package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// roundPair is two rounds, given as "N M" or "N,M".
type roundPair struct{ from, to int }

// Decode is part of kong.MapperValue.
func (p *roundPair) Decode(words *kong.DecodeContext) error {
	var given string
	if err := words.Scan.PopValueInto("rounds", &given); err != nil {
		return err
	}
	first, second, both := strings.Cut(given, ",")
	if !both && words.Scan.Len() > 0 && isRound(words.Scan.Peek().String()) {
		second = words.Scan.Pop().String()
	}
	var err, failed error
	p.from, err = strconv.Atoi(strings.TrimSpace(first))
	p.to, failed = strconv.Atoi(strings.TrimSpace(second))
	if err != nil || failed != nil {
		return fmt.Errorf("give two rounds, such as 1 2")
	}
	return nil
}

func isRound(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

// sight is what a role sees at a position of the log, or saw in one of its rounds.
func (l *crewLook) sight(ctx context.Context, role string, at int64, round int) (engine.Sight, error) {
	sight := engine.Sight{Role: role, At: at}
	if round == 0 {
		return sight, nil
	}
	rounds, err := l.engine.RoleRounds(ctx, l.session, role)
	if err != nil {
		return sight, err
	}
	if round < 0 {
		round += len(rounds) + 1
	}
	if round < 1 || round > len(rounds) {
		return sight, l.noRound(role, len(rounds))
	}
	sight.Request = rounds[round-1].Seq
	return sight, nil
}

func (l *crewLook) noRound(role string, rounds int) error {
	if rounds == 0 {
		return fmt.Errorf("role %s: %w: it was not asked in this conversation yet", oneLine(role, 60), continuo.ErrNotFound)
	}
	return fmt.Errorf("role %s: %w: it has the rounds 1 to %d; --rounds lists them", oneLine(role, 60), continuo.ErrNotFound, rounds)
}

// list lists the requests to a role's model.
func (l *crewLook) list(ctx context.Context, role string) error {
	rounds, err := l.engine.RoleRounds(ctx, l.session, role)
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		return l.app.json(map[string]any{"data": rounds})
	}
	if len(rounds) == 0 {
		return l.noRound(role, 0)
	}
	t := table{right: []bool{true, true, true, true, true}}
	head := func(text string) cell { return cell{text, l.paint.dim} }
	t.add(head("round"), head("entry"), head("shown up to"), head("cursor"), head("bytes"), head("what came of it"))
	for _, round := range rounds {
		words := cell{"an answer", nil}
		switch {
		case round.Failed != "":
			words = cell{"broke off: " + oneLine(round.Failed, 200), l.paint.yellow}
		case round.Placeholder:
			words = cell{"nothing to add", l.paint.dim}
		case round.Calls > 0:
			words = plain(count(round.Calls, "call"))
		}
		t.add(plain(number(round.Round)), plain(number(round.Seq)), plain(number(round.At)), plain(number(round.Cursor)), plain(number(round.Bytes)), words)
	}
	for _, line := range t.lines(l.width) {
		l.app.print("%s", line)
	}
	return nil
}
