package trace

import (
	"context"
	"iter"

	"github.com/continuo-log/continuo/model"
)

// sessions is a model whose agent has sessions, the requests of which are traced too.
type sessions struct {
	*Model
	agent model.Sessions
}

// Open opens a session; see [model.Sessions].
func (s *sessions) Open(ctx context.Context, id string) (model.Session, error) {
	opened, err := s.agent.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return &session{Session: opened, traced: &Model{Model: opened, options: s.options, meters: s.meters}}, nil
}

// session is a session whose requests are traced.
type session struct {
	model.Session
	traced *Model
}

// Stream sends body and yields the answer under a span; see [model.Model].
func (s *session) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return s.traced.Stream(ctx, body)
}
