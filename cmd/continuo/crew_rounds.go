package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
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

// query is what a role sees at a position of the log, or saw in one of its rounds.
func (l *crewContexts) query(ctx context.Context, role string, at int64, round int) (engine.RoleContextQuery, error) {
	query := engine.RoleContextQuery{Role: role, At: at}
	if round == 0 {
		return query, nil
	}
	rounds, err := l.engine.Crews.RoleRounds(ctx, l.session, role)
	if err != nil {
		return query, err
	}
	if round < 0 {
		round += len(rounds) + 1
	}
	if round < 1 || round > len(rounds) {
		return query, l.noRound(role, len(rounds))
	}
	query.Request = rounds[round-1].Seq
	return query, nil
}

func (l *crewContexts) noRound(role string, rounds int) error {
	if rounds == 0 {
		return fmt.Errorf("role %s: %w: it was not asked in this conversation yet", term.OneLine(role, 60), continuo.ErrNotFound)
	}
	return fmt.Errorf("role %s: %w: it has the rounds 1 to %d; --rounds lists them", term.OneLine(role, 60), continuo.ErrNotFound, rounds)
}

// list lists the requests to a role's model.
func (l *crewContexts) list(ctx context.Context, role string) error {
	rounds, err := l.engine.Crews.RoleRounds(ctx, l.session, role)
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		return l.app.json(api.AllOf(rounds))
	}
	if len(rounds) == 0 {
		return l.noRound(role, 0)
	}
	t := l.table(">round", ">entry", ">shown up to", ">cursor", ">bytes", "outcome")
	for _, round := range rounds {
		words := "an answer"
		switch {
		case round.Failed != "":
			words = l.paint.Yellow("broke off: " + term.OneLine(round.Failed, 200))
		case round.Placeholder:
			words = l.paint.Dim("nothing to add")
		case round.Calls > 0:
			words = term.Count(round.Calls, "call")
		}
		t.Add(term.Number(round.Round), term.Number(round.Seq), term.Number(round.At), term.Number(round.Cursor), term.Number(round.Bytes), words)
	}
	l.app.printTable(t, l.width)
	return nil
}
