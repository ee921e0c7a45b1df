package match

import (
	"cmp"
	"context"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// search is one request that is being matched.
type search struct {
	*Matcher
	query Query
	call  *call
	// conversations are those of the prefixes that were found.
	conversations map[string]continuo.Conversation
	side          string
	session       string
	*trail
	asked   map[continuo.PrefixHash]int // the number of entries that a hash stands for that was looked up
	answers int                         // how many entries there are up to the last answer
}

func newSearch(m *Matcher, q Query) *search {
	s := &search{
		Matcher: m, conversations: map[string]continuo.Conversation{}, query: q, call: newCall(q.Header, q.Request), asked: map[continuo.PrefixHash]int{},
	}
	if s.query.Scope.ProjectID == "" {
		s.query.Scope.ProjectID = continuo.DefaultProject
	}
	s.side, s.session = s.call.side(), s.call.session()
	s.trail = m.trailOf(newChain(s.query.Scope.ProjectID, strings.Join(q.Request.System, "\n"), s.sessionName()), q.Request.Entries)
	for i := len(q.Request.Entries) - 1; i >= 0 && s.answers == 0; i-- {
		if q.Request.Entries[i].Role == continuo.Assistant {
			s.answers = i + 1
		}
	}
	return s
}

// sessionName distinguishes a session's side calls from it.
func (s *search) sessionName() string {
	if s.session == "" || s.side == "" || s.call.parent() != "" && s.call.parent() != s.session {
		return s.session
	}
	return s.session + "/" + s.side
}

func (s *search) entries() []continuo.Entry { return s.query.Request.Entries }

// candidate is a conversation that the request may belong to.
type candidate struct {
	conversation continuo.Conversation
	snapshot     *continuo.Snapshot // its newest entries; nil: not read
	prefix       continuo.Prefix
	common       int   // how many of the request's entries it has
	at           int64 // the seq of the last of them
	turn         string
	cut          bool // that one is an answer that broke off
	dropped      int  // how many entries after at the request does not have, all of turns that failed
	failed       bool // one of those is an answer that failed
	diverged     bool // it continues in another way
	answered     bool // by the turn that has the last of them
	again        bool // that turn is of an earlier try of the request
}

// The limits of a search.
const (
	tailPositions  = 24 // how many positions are looked up first, and at a time
	samePrefix     = 16 // how many conversations with the same beginning are looked at
	maxCandidates  = 8
	fewestEntries  = 4  // how many of the newest entries of a conversation are read
	maxWalkEntries = 64 // how many entries without a known prefix are compared
)

// find returns the conversations of some kinds that begin as the request does; with a session, only those of it. An
// error is one of the store.
func (s *search) find(ctx context.Context, session int64, kinds ...continuo.Kind) ([]*candidate, error) {
	rows, err := s.lookUp(ctx, session)
	if err != nil {
		return nil, err
	}
	best := map[string]continuo.Prefix{}
	for _, row := range rows {
		old, found := best[row.ConversationID]
		at, was := s.asked[row.Hash], s.asked[old.Hash]
		if !found || at > was || at == was && s.sameIDs(row) && !s.sameIDs(old) {
			best[row.ConversationID] = row
		}
	}
	all := make([]continuo.Prefix, 0, len(best))
	for _, row := range best {
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b continuo.Prefix) int {
		return cmp.Or(cmp.Compare(s.asked[b.Hash], s.asked[a.Hash]), strings.Compare(b.ConversationID, a.ConversationID))
	})
	var found []*candidate
	for _, row := range all {
		c, err := s.candidate(ctx, row, kinds)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		if found = append(found, c); len(found) == maxCandidates {
			break
		}
	}
	return found, nil
}

// candidate reads the conversation of a prefix; nil when the caller may not reach it, or its kind is another.
func (s *search) candidate(ctx context.Context, row continuo.Prefix, kinds []continuo.Kind) (*candidate, error) {
	conversation := s.conversations[row.ConversationID]
	if !s.mayReach(conversation) || !slices.Contains(kinds, conversation.Kind) {
		return nil, nil
	}
	c := &candidate{conversation: conversation, prefix: row, common: s.asked[row.Hash], at: row.Seq}
	if newest := int(conversation.LastSeq-c.at) + 1; newest <= maxWalkEntries {
		var err error
		if c.snapshot, err = s.log.LatestOf(ctx, conversation, max(newest, fewestEntries)); err != nil {
			return nil, err
		}
	}
	if err := s.walk(ctx, c); err != nil {
		return nil, err
	}
	var err error
	if s.query.Repeats != nil && c.answered && s.repeats(c) {
		c.again, err = s.query.Repeats(ctx, conversation, c.turn)
	}
	return c, err
}

func (s *search) mayReach(c continuo.Conversation) bool {
	scope := s.query.Scope
	return c.ProjectID == scope.ProjectID && (scope.UserID == "" || c.UserID == scope.UserID) && c.ArchivedAt.IsZero()
}

// lookUp finds the prefixes of the longest beginnings that are known: of the newest positions, and where those are not
// known, of the longest that a search by parts finds. A beginning whose prefixes have gaps may be found shorter.
func (s *search) lookUp(ctx context.Context, session int64) ([]continuo.Prefix, error) {
	low, high := 0, len(s.positions) // of positions[:low] some are known, positions[high:] are not
	ask := s.positions[max(0, high-tailPositions):]
	var rows []continuo.Prefix
	for len(ask) > 0 {
		found, err := s.ask(ctx, session, ask)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			rows = found
		}
		longest := 0
		for _, row := range found {
			longest = max(longest, s.asked[row.Hash])
		}
		if len(found) > 0 && len(ask) == high-low {
			return rows, nil
		}
		low, high = s.narrow(ask, longest, low, high)
		if low >= high || longest > 0 && isTail(ask, s.positions[:high]) {
			return rows, nil
		}
		ask = spread(s.positions[low:high])
	}
	return rows, nil
}

// narrow returns the range of positions in which a longer beginning may be known.
func (s *search) narrow(asked []int, longest, low, high int) (newLow, newHigh int) {
	if i := slices.Index(s.positions, longest); longest > 0 && i >= low {
		low = i + 1
	}
	for _, position := range asked {
		if i := slices.Index(s.positions, position); position > longest && i >= low {
			high = min(high, i)
			break
		}
	}
	return low, high
}

// isTail reports whether the positions that were asked for are the last of all.
func isTail(asked, all []int) bool {
	return len(asked) > 0 && len(all) >= len(asked) && slices.Equal(asked, all[len(all)-len(asked):])
}

// spread returns at most tailPositions of some positions, the first and the last included.
func spread(positions []int) []int {
	if len(positions) <= tailPositions {
		return positions
	}
	var some []int
	for i := range tailPositions {
		some = append(some, positions[i*(len(positions)-1)/(tailPositions-1)])
	}
	return some
}

func (s *search) ask(ctx context.Context, session int64, positions []int) ([]continuo.Prefix, error) {
	hashes := make([]continuo.PrefixHash, 0, len(positions))
	for _, position := range slices.Backward(positions) {
		hash := s.states[position].hash
		hashes, s.asked[hash] = append(hashes, hash), s.last(position)
	}
	rows, of, err := s.prefixes.Prefixes(ctx, continuo.PrefixQuery{
		ProjectID: s.query.Scope.ProjectID, Hashes: hashes, Session: session, Limit: samePrefix,
	})
	for _, conversation := range of {
		s.conversations[conversation.ID] = conversation
	}
	return rows, err
}

// walk compares the entries after the known prefix, which have none, and finds out how the conversation continues.
func (s *search) walk(ctx context.Context, c *candidate) error {
	chain, waiting, read := s.states[c.common], 0, 0
	for entry, err := range s.log.ReadShared(ctx, c.conversation, continuo.Range{From: max(c.at, 1), Expect: 8, Snapshot: c.snapshot}) {
		if err != nil {
			return err
		}
		if entry.Seq == c.at {
			c.turn, c.cut = entry.TurnID, isCut(entry)
			continue
		}
		if read++; read > maxWalkEntries {
			c.diverged = true
			return nil
		}
		next := chain.add(entry)
		if next.hash == chain.hash && (entry.Hidden || entry.Error == nil) {
			continue
		}
		if common, ok := s.after(c.common, next.hash); ok {
			chain, c.common, c.at, c.turn, c.cut = next, common, entry.Seq, entry.TurnID, isCut(entry)
			c.dropped, c.failed, waiting = 0, false, 0
			continue
		}
		c.dropped++
		switch {
		case isCut(entry):
			c.failed, waiting = true, 0
		case entry.Role == continuo.Assistant:
			c.diverged, c.answered = true, c.dropped == 1 && entry.TurnID == c.turn && c.turn != ""
			return nil
		default:
			waiting++
		}
	}
	c.diverged = waiting > 0 // another request waits for its answer
	return nil
}

// isCut reports whether an entry is an answer that failed, without calls that could be answered.
func isCut(e *continuo.Entry) bool {
	return e.Role == continuo.Assistant && e.Error != nil && len(e.ToolCalls) == 0
}

// sameIDs reports whether a prefix has the call ids of the request.
func (s *search) sameIDs(row continuo.Prefix) bool { return row.IDs == s.states[s.asked[row.Hash]].ids }

// answered reports whether the common entries of a candidate have an answer.
func (s *search) answered(c *candidate) bool { return s.states[c.common].answered }

// repeats reports whether the request has nothing that the candidate does not have.
func (s *search) repeats(c *candidate) bool { return c.common == len(s.entries()) }

// extends reports whether the request continues a candidate: there is no answer in the request that the candidate does
// not have, and none in the candidate that the request does not have. In a session, the client may have made up one in
// place of an answer that broke off, as Claude Code does after a Ctrl-C.
func (s *search) extends(c *candidate) bool {
	return !c.diverged && (s.answers <= c.common || c.failed && s.session != "")
}

// The ranks of candidates, the best last.
const (
	rankBeginning = iota // only messages before any answer are common
	rankDiverged
	rankRepeated
	rankExtended
	rankRetried
)

func (s *search) rank(c *candidate) int {
	switch {
	case c.again, s.repeats(c) && !c.diverged && (c.failed || isRetry(s.query)):
		return rankRetried
	case s.extends(c) && !s.repeats(c):
		return rankExtended
	case s.repeats(c) && !c.diverged:
		return rankRepeated
	case s.answered(c):
		return rankDiverged
	}
	return rankBeginning
}

// best returns the candidate that the request most likely belongs to; nil without candidates. Of conversations that say
// the same, the one with the request's call ids is meant, then the one that the request continues.
func (s *search) best(all []*candidate) *candidate {
	if len(all) == 0 {
		return nil
	}
	number := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return slices.MinFunc(all, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(number(s.hasIDs(b)), number(s.hasIDs(a))), cmp.Compare(s.rank(b), s.rank(a)),
			cmp.Compare(number(b.prefix.System == s.states[0].system), number(a.prefix.System == s.states[0].system)),
			cmp.Compare(b.common, a.common), b.conversation.UpdatedAt.Compare(a.conversation.UpdatedAt),
		)
	})
}

// hasIDs reports whether a candidate has call ids, and those of the request.
func (s *search) hasIDs(c *candidate) bool { return c.prefix.IDs != 0 && s.sameIDs(c.prefix) }
