package api

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// compareOperation compares what models were sent, or would be.
func (s *Service) compareOperation() Operation {
	return define(Operation{
		ID: "compare", Method: "GET", Path: "/api/compare", Tag: "context", Summary: "show what two requests or views have in common",
		Answers: answers(ok("Both sides, and their parts aligned."), shared(http.StatusRequestEntityTooLarge, "Overflow")),
	}, s.Compare)
}

// CompareQuery selects the sides of a comparison.
//
// A side is `CONVERSATION~SEQ`, the request of the answer at that seq; or `CONVERSATION~VIEW` or `CONVERSATION~VIEW~AT`, what
// the next request would be in a view, now or when the entry `AT` was the newest. A view is one of those of
// `/api/conversations/{id}/context`; `role:NAME` is what a role of the crew sees that spoke last, `role:CREW/NAME` one of
// another crew.
type CompareQuery struct {
	// The earlier side, such as `conv_…~42`, `conv_…~codex` or `conv_…~role:builder~40`.
	Left string `query:"left" required:"true"`
	// The later side, in the same form; of the same conversation or of another one.
	Right string `query:"right" required:"true"`

	left, right sideQuery
}

// sideQuery is a side as it was given.
type sideQuery struct {
	param, conversation, view, crew string
	request, at                     int64
}

// Check reads both sides.
func (in *CompareQuery) Check() (err error) {
	if in.left, err = sideOf("left", in.Left); err != nil {
		return err
	}
	in.right, err = sideOf("right", in.Right)
	return err
}

var sidePattern = regexp.MustCompile(
	`^([^~]+)~(?:([0-9]+)|(chat|agent|run|codex|continuity|replay|handoff|role:(?:([a-z][a-z0-9_-]*)/)?[^/~]+)(?:~([0-9]+))?)$`)

func sideOf(param, given string) (side sideQuery, err error) {
	found := sidePattern.FindStringSubmatch(given)
	if found == nil {
		return side, Refuse(param, "%s must be CONVERSATION~SEQ, CONVERSATION~VIEW or CONVERSATION~VIEW~AT, with a view such as codex or role:NAME, not %q", param, Bounded(given))
	}
	side = sideQuery{param: param, conversation: found[1], view: found[3], crew: found[4]}
	if side.crew != "" {
		side.view = engine.RoleViewPrefix + side.view[len(engine.RoleViewPrefix)+len(side.crew)+1:]
	}
	for _, number := range []struct {
		text string
		to   *int64
	}{{found[2], &side.request}, {found[5], &side.at}} {
		if number.text == "" {
			continue
		}
		if *number.to, err = strconv.ParseInt(number.text, 10, 64); err != nil || *number.to == 0 {
			return side, Refuse(param, "%s must name an entry by its seq, from 1: not %s", param, Bounded(number.text))
		}
	}
	return side, nil
}

// Compare aligns what two requests showed, or two views show.
//
// Two requests of answers, two views of one conversation at one or two positions, or two roles of a crew: their system texts,
// tools and messages in order, each the same, changed (with the words that differ), removed or inserted; and how much of the
// beginning both have in common, which is what a provider's cache of prefixes can serve. Calls no model and changes nothing.
func (s *Service) Compare(ctx context.Context, scope continuo.Scope, in CompareQuery) (*engine.RequestComparison, error) {
	left, err := s.openSide(ctx, scope, in.left)
	if err != nil {
		return nil, err
	}
	right, err := s.openSide(ctx, scope, in.right)
	if err != nil {
		return nil, err
	}
	comparison, err := s.Engine.Contexts.Compare(ctx, left, right)
	var wrong *engine.SideError
	switch {
	case !errors.As(err, &wrong):
		return comparison, err
	case wrong.Right:
		return nil, At("right", wrong.Err)
	}
	return nil, At("left", wrong.Err)
}

func (s *Service) openSide(ctx context.Context, scope continuo.Scope, side sideQuery) (engine.ComparisonSide, error) {
	conversation, err := s.open(ctx, scope, side.conversation)
	return engine.ComparisonSide{Conversation: conversation, Request: side.request, View: side.view, Crew: side.crew, At: side.at}, At(side.param, err)
}
