package match

import (
	"context"
	"errors"

	continuo "github.com/continuo-log/continuo"
)

// sessionKey is the key of a session's first conversation.
func sessionKey(session string) string { return "session " + session }

// ofSession returns the first conversation of a session; nil when there is none.
func (s *search) ofSession(ctx context.Context, session string) (*continuo.Conversation, error) {
	if session == "" {
		return nil, nil
	}
	found, err := s.log.Find(ctx, s.query.Scope, sessionKey(session))
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	return &found, err
}

// anonymous decides by the messages alone.
func (s *search) anonymous(ctx context.Context) (*Match, error) {
	all, err := s.find(ctx, 0, continuo.KindUser)
	if err != nil {
		return nil, err
	}
	c := s.best(all)
	if c == nil {
		return s.fromSummary(ctx)
	}
	switch rank := s.rank(c); {
	case rank == rankRetried, rank == rankRepeated && s.answered(c):
		return s.retry(ByPrefix, c), nil
	case !s.answered(c) && !c.failed:
		return s.fromSummary(ctx) // others begin with the same messages
	case rank == rankExtended && s.isOwn(c):
		return s.extend(ctx, ByPrefix, c)
	}
	return s.fork(ctx, ByPrefix, c)
}

// isOwn reports whether a conversation that the request continues may be its own: it has no session either, and its
// system prompt or its call ids are the request's.
func (s *search) isOwn(c *candidate) bool {
	return c.prefix.Session == 0 && (c.prefix.System == s.states[0].system || s.hasIDs(c))
}

// inSession decides among the conversations of the client's session.
func (s *search) inSession(ctx context.Context) (*Match, error) {
	if m, err := s.knownInSession(ctx); m != nil || err != nil {
		return m, err
	}
	first, err := s.ofSession(ctx, s.session)
	switch {
	case err != nil:
		return nil, err
	case first == nil:
		return s.newSession(ctx)
	case first.LastSeq == 0: // a side call came first
		return s.of(BySession, &candidate{conversation: *first}), nil
	}
	if m, err := s.knownInSession(ctx); m != nil || err != nil { // the session has begun since its messages were looked for
		return m, err
	}
	return &Match{ // the client replaced the whole history
		By: BySession, Conversation: *first, Fork: true, Rewritten: true, Parent: first.ID, search: s, request: s.query.Request,
		chain: s.states[0], tracked: true,
	}, nil
}

// knownInSession decides by the messages that the client's session has; nil where it has none of the request's.
func (s *search) knownInSession(ctx context.Context) (*Match, error) {
	all, err := s.find(ctx, s.states[0].session, continuo.KindUser)
	if err != nil {
		return nil, err
	}
	c := s.best(all)
	if c == nil {
		return nil, nil
	}
	switch s.rank(c) {
	case rankRetried, rankRepeated:
		return s.retry(BySession, c), nil
	case rankExtended:
		return s.extend(ctx, BySession, c)
	case rankDiverged:
		return s.fork(ctx, BySession, c)
	}
	return nil, nil
}

// newSession decides about a session that is not known: it may begin with another one's history.
func (s *search) newSession(ctx context.Context) (*Match, error) {
	all, err := s.find(ctx, 0, continuo.KindUser)
	if err != nil {
		return nil, err
	}
	made := s.made()
	if c := s.best(all); c != nil && s.answered(c) {
		if made, err = s.fork(ctx, ByPrefix, c); err != nil {
			return nil, err
		}
		made.Rewritten = false
	}
	made.Key = sessionKey(s.session)
	return made, nil
}

// beside decides about a call beside a conversation: it continues one, or begins one, as a fork where it repeats what
// its session says.
func (s *search) beside(ctx context.Context) (*Match, error) {
	all, err := s.find(ctx, 0, continuo.KindUser, continuo.KindSide)
	if err != nil {
		return nil, err
	}
	var sides, talks []*candidate
	for _, c := range all {
		switch {
		case c.conversation.Kind == continuo.KindUser:
			talks = append(talks, c)
		case c.prefix.Session == s.states[0].session:
			sides = append(sides, c)
		}
	}
	of := cmpOr(s.call.parent(), s.session)
	parent, err := s.ofSession(ctx, of)
	if err != nil {
		return nil, err
	}
	by := ByPrefix
	if of != "" {
		by = BySession
	}
	if c := s.best(sides); c != nil && (s.answered(c) || isRetry(s.query) || c.failed) {
		switch s.rank(c) {
		case rankRetried, rankRepeated:
			return s.retry(by, c), nil
		case rankExtended:
			return s.extend(ctx, by, c)
		}
	}
	if of != "" {
		talks = ofSessions(talks, sessionHash(of))
	}
	if c := s.best(talks); c != nil && s.answered(c) {
		m, err := s.fork(ctx, by, c)
		if err == nil {
			m.Rewritten, m.Parent = false, c.conversation.ID
		}
		return m, err
	}
	m := s.made()
	switch {
	case parent != nil:
		m.By, m.Parent = by, parent.ID
	case of != "" && of != s.session || of != "" && s.call.client.sharesSession:
		m.By, m.ParentKey = by, sessionKey(of)
	}
	return m, nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// ofSessions returns the candidates of a session.
func ofSessions(all []*candidate, session int64) (own []*candidate) {
	for _, c := range all {
		if c.prefix.Session == session {
			own = append(own, c)
		}
	}
	return own
}

// made is a new conversation.
func (s *search) made() *Match {
	return &Match{By: ByNew, Side: s.side, search: s, request: s.query.Request, chain: s.states[0], tracked: true}
}

// of is a match with a candidate.
func (s *search) of(by By, c *candidate) *Match {
	m := &Match{
		By: by, Conversation: c.conversation, Snapshot: c.snapshot, Common: c.common, At: c.at, Dropped: c.dropped, Side: s.side, search: s, request: s.query.Request,
		chain: s.states[c.common], tracked: true,
	}
	if c.cut && c.common > 0 { // the request does not say that the answer broke off
		m.chain.before, m.chain.cut = &s.states[c.common-1], s.entries()[c.common-1].Content.String()
	}
	return m
}

// extend continues a conversation. A client that made up the ids of the open calls answers under its own: the calls are
// the same, in the same order.
func (s *search) extend(ctx context.Context, by By, c *candidate) (*Match, error) {
	m := s.of(by, c)
	entries := s.entries()
	if entries[c.common].Role != continuo.Tool {
		return m, nil
	}
	group, err := s.openGroup(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := c.common - 1; i >= 0; i-- {
		if !entries[i].HasCalls() {
			continue
		}
		m.callIDs = map[string]string{}
		for n, call := range entries[i].ToolCalls {
			if n < len(group.Calls) && call.ID != group.Calls[n].ID {
				m.callIDs[call.ID] = group.Calls[n].ID
			}
		}
		break
	}
	return m, nil
}

func (s *search) openGroup(ctx context.Context, c *candidate) (continuo.Group, error) {
	if c.snapshot == nil {
		return s.log.OpenGroup(ctx, c.conversation)
	}
	return s.log.OpenGroupOf(ctx, c.snapshot)
}

func (s *search) retry(by By, c *candidate) *Match {
	m := s.of(by, c)
	m.Retry, m.RetryOf = true, c.turn
	return m
}

// fork is a fork at the last common entry at which no call is open.
func (s *search) fork(ctx context.Context, by By, c *candidate) (*Match, error) {
	m := s.of(by, c)
	m.Fork, m.Rewritten, m.Dropped, m.Parent = true, c.diverged || s.answers > c.common, 0, c.conversation.ID
	back := openEntries(s.entries()[:m.Common])
	if back == 0 {
		return m, nil
	}
	at, err := s.beforeGroup(ctx, c)
	if err != nil {
		return nil, err
	}
	m.Common, m.At = m.Common-back, at
	m.chain = s.states[m.Common]
	return m, nil
}

// openEntries returns how many of the last entries are a call and its results while some are missing.
func openEntries(entries []continuo.Entry) int {
	var group continuo.Group
	begin := 0
	for i := range entries {
		if entries[i].HasCalls() {
			begin = i
		}
		if group.Accept(&entries[i]) != nil {
			group = continuo.Group{}
		}
	}
	if len(group.Open) == 0 {
		return 0
	}
	return len(entries) - begin
}

// beforeGroup returns the seq before the calls that are open at a candidate's last common entry.
func (s *search) beforeGroup(ctx context.Context, c *candidate) (int64, error) {
	for entry, err := range s.log.ReadShared(ctx, c.conversation, continuo.Range{From: 1, To: c.at, Backward: true, Expect: 4}) {
		if err != nil {
			return 0, err
		}
		if entry.HasCalls() {
			return entry.Seq - 1, nil
		}
	}
	return 0, nil
}

// named decides about a request that names its conversation. Where the request repeats nothing that was answered, all of
// it is new: the server keeps the history.
func (s *search) named(ctx context.Context) (*Match, error) {
	c := &candidate{conversation: *s.query.Named}
	all, err := s.find(ctx, 0, c.conversation.Kind)
	if err != nil {
		return nil, err
	}
	for _, found := range all {
		if found.conversation.ID == c.conversation.ID {
			c = found
		}
	}
	if c.common == 0 && s.answers > 0 {
		if err := s.walk(ctx, c); err != nil {
			return nil, err
		}
	}
	switch {
	case c.common > 0 && s.rank(c) == rankRetried:
		return s.retry(ByHeader, c), nil
	case c.common > 0 && s.answered(c) && s.repeats(c) && !c.diverged:
		return s.retry(ByHeader, c), nil
	case s.answered(c) && s.extends(c):
		return s.extend(ctx, ByHeader, c)
	case s.answered(c):
		return s.fork(ctx, ByHeader, c)
	}
	m := s.of(ByHeader, c)
	m.Common, m.At, m.Dropped, m.tracked, m.chain = 0, c.conversation.LastSeq, 0, c.conversation.LastSeq == 0, s.states[0]
	return m, nil
}
