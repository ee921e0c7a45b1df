package recall

// Feature is one number that says something about a document for a query.
type Feature int

// Row has a document's features, each in units of 1/65536.
type Row [features]int64

// The features. "own" is the document's BM25 score as a share of the best one. "user" and "model" are 1 for documents of
// that role in a conversation whose messages do not name their speakers.
const (
	own Feature = iota
	ownSquared
	ownRoot
	absolute
	covered
	coveredSquared
	rarest
	matched
	matchedSquared
	adjacent
	adjacentOwn
	ownShort
	ownAllWords
	previous
	next
	previous2
	next2
	bestNeighbour
	ownPrevious
	ownNext
	stretch
	session
	feedback
	date
	bySpeaker
	byOther
	bySpeakerOwn
	byOtherOwn
	bySpeakerPrevious
	bySpeakerNext
	reciprocalRank
	size
	sizeOwn
	sizeSquared
	asks
	asksOwn
	previousAsks
	previousAsksSpeaker
	nextAsked
	numberWhen
	numberCount
	numberOwn
	position
	isWhen
	isAdvice
	isOverview
	collection
	queryTerms
	overviewOwn
	overviewCovered
	overviewMatched
	name
	nameOverview
	nameOwn
	related
	unmatched
	unmatchedNeighbour
	standing
	standingAdvice
	standingOwn
	standingSize
	user
	model
	userOwn
	modelOwn
	userFeedback
	userStretch
	userCue
	userCueAdvice
	userCueOwn
	userPrefers
	userPrefersAdvice
	userPrefersOwn
	userOverview
	userOverviewOwn
	userOverviewStretch
	modelOverview
	modelOverviewOwn
	userNumber
	userPrevious
	userNext
	userPrevious2
	userNext2
	modelPrevious
	userCovered
	userCoveredSquared
	userRarest
	userUnmatched
	userUnmatchedOverview
	userSize
	userCoveredSize
	userName
	userAbsolute
	namesCount
	namesOverview
	numbersCount
	numbersOwn
	firstsCount
	firstsOwn
	newWords
	newOwn
	newOverview
	firstMention
	firstOverview
	lastMention
	addedBefore
	addedAfter
	around
	aroundOwn
	userNames
	userNumbers
	userNumbersOverview
	userNamesOverview
	userFirsts
	userNews
	userNewsOverview
	userFirstMention
	userAround
	sessionStart
	userSessionStart
	features
)

// Names are the features' names, in their order.
var Names = [features]string{
	"own", "own^2", "sqrt(own)", "absolute", "covered", "covered^2", "rarest", "matched", "matched^2", "adjacent", "adjacent*own",
	"own(short)", "own(all words)", "previous", "next", "previous2", "next2", "best neighbour", "own*previous", "own*next",
	"stretch", "session", "feedback", "date", "by speaker", "by other", "by speaker*own", "by other*own", "by speaker*previous",
	"by speaker*next", "reciprocal rank", "size", "size*own", "size^2", "asks", "asks*own", "previous asks", "previous asks*speaker",
	"next*asks", "number*when", "number*count", "number*own", "position", "when", "advice", "overview", "collection", "query terms",
	"overview*own", "overview*covered", "overview*matched", "name", "name*overview", "name*own", "related", "unmatched",
	"unmatched*neighbour", "standing", "standing*advice", "standing*own", "standing*size", "user", "model", "user*own", "model*own",
	"user*feedback", "user*stretch", "user*cue", "user*cue*advice", "user*cue*own", "user*prefers", "user*prefers*advice",
	"user*prefers*own", "user*overview", "user*overview*own", "user*overview*stretch", "model*overview", "model*overview*own",
	"user*number", "user*previous", "user*next", "user*previous2", "user*next2", "model*previous", "user*covered", "user*covered^2",
	"user*rarest", "user*unmatched", "user*unmatched*overview", "user*size", "user*covered*size", "user*name", "user*absolute",
	"names in it", "names in it*overview", "numbers", "numbers*own", "first person", "first person*own", "new words", "new words*own",
	"new words*overview", "first mention", "first mention*overview", "last mention", "previous adds", "next adds", "around",
	"around*own", "user*names in it", "user*numbers", "user*numbers*overview", "user*names in it*overview", "user*first person",
	"user*new words", "user*new words*overview", "user*first mention", "user*around", "session start", "user*session start",
}

func flag(is bool) fixed {
	if is {
		return one
	}
	return 0
}

// Features calls a function with the features of each document. The row is valid during the call.
func (c *Corpus) Features(query string, each func(i int, row *Row)) {
	asked := c.inquire(query)
	q, m := asked.question, c.match(asked)
	total := ln(fixed(max(1, c.total))<<16) / 8
	var row Row
	for i := range c.documents {
		row = Row{}
		c.textFeatures(q, m, i, &row)
		c.placeFeatures(q, m, i, &row)
		c.formFeatures(q, m, i, &row)
		c.roleFeatures(q, m, i, &row)
		c.factFeatures(q, m, i, &row)
		row[collection] = total
		row[queryTerms] = fixed(len(q.terms)) * one / 8
		row[isWhen], row[isAdvice], row[isOverview] = q.when, q.advice, q.overview
		each(i, &row)
	}
}

// textFeatures say how well the document's own words match.
func (c *Corpus) textFeatures(_ *question, m *matches, i int, row *Row) {
	row[own] = m.own[i]
	row[ownSquared] = mul(m.own[i], m.own[i])
	row[ownRoot] = sqrt(m.own[i])
	row[absolute] = m.absolute[i]
	row[covered] = m.covered[i]
	row[coveredSquared] = mul(m.covered[i], m.covered[i])
	row[rarest] = m.rarest[i] / 8
	row[matched] = fixed(m.matched[i]) * one / 4
	few := fixed(min(m.matched[i], 6))
	row[matchedSquared] = few * few * one / 16
	row[adjacent] = fixed(m.adjacent[i]) * one / 2
	row[adjacentOwn] = mul(row[adjacent], m.own[i])
	row[ownShort] = m.short[i]
	row[ownAllWords] = m.all[i]
	row[feedback] = m.feedback[i]
	row[related] = m.related[i]
	row[unmatched] = flag(m.matched[i] == 0)
	if m.rank[i] > 0 {
		row[reciprocalRank] = 3 * one / fixed(2+m.rank[i])
	}
	row[name] = m.names[i]
	row[nameOwn] = mul(m.names[i], m.own[i])
}

// placeFeatures say how well what is around the document matches.
func (c *Corpus) placeFeatures(_ *question, m *matches, i int, row *Row) {
	row[previous], row[next] = at(m.own, m.before[i]), at(m.own, m.after[i])
	row[previous2], row[next2] = at(m.own, at32(m.before, m.before[i])), at(m.own, at32(m.after, m.after[i]))
	row[bestNeighbour] = max(row[previous], row[next])
	row[ownPrevious], row[ownNext] = mul(m.own[i], row[previous]), mul(m.own[i], row[next])
	row[unmatchedNeighbour] = mul(row[unmatched], row[bestNeighbour])
	row[stretch] = m.stretch[i]
	row[session] = m.session[i]
	row[bySpeaker], row[byOther] = m.bySpeaker[i], m.byOther[i]
	row[bySpeakerOwn], row[byOtherOwn] = mul(row[bySpeaker], m.own[i]), mul(row[byOther], m.own[i])
	row[bySpeakerPrevious], row[bySpeakerNext] = mul(row[bySpeaker], row[previous]), mul(row[bySpeaker], row[next])
	if b := m.before[i]; b >= 0 && c.prepared[b].question {
		row[previousAsks] = row[previous]
		row[previousAsksSpeaker] = mul(row[previous], row[bySpeaker])
	}
	row[position] = c.prepared[i].place
}

// formFeatures are those of the document's form, and of the question's.
func (c *Corpus) formFeatures(q *question, m *matches, i int, row *Row) {
	p := &c.prepared[i]
	row[date] = fixed(m.dates[i]) * one / 2
	row[size], row[sizeOwn], row[sizeSquared] = p.logCost, mul(p.logCost, m.own[i]), mul(p.logCost, p.logCost)
	row[asks] = flag(p.question)
	row[asksOwn], row[nextAsked] = mul(row[asks], m.own[i]), mul(row[asks], row[next])
	number := flag(p.numbers > 0)
	row[numberWhen], row[numberCount], row[numberOwn] = mul(number, q.when), mul(number, q.count), mul(number, m.own[i])
	row[overviewOwn] = mul(q.overview, m.own[i])
	row[overviewCovered] = mul(q.overview, m.covered[i])
	row[overviewMatched] = mul(q.overview, row[matched])
	row[nameOverview] = mul(m.names[i], q.overview)
	row[standing] = flag(p.Standing)
	row[standingAdvice] = mul(row[standing], q.advice)
	row[standingOwn] = mul(row[standing], max(m.own[i], 3*one/10))
	row[standingSize] = mul(row[standing], p.logCost)
}

// factFeatures say how much a document states: names, numbers, what is new in the conversation; and what it has of the question
// together with its neighbours.
func (c *Corpus) factFeatures(q *question, m *matches, i int, row *Row) {
	p := &c.prepared[i]
	row[namesCount], row[namesOverview] = p.names, mul(p.names, q.overview)
	row[numbersCount], row[numbersOwn] = p.numbers, mul(p.numbers, m.own[i])
	row[firstsCount], row[firstsOwn] = p.firsts, mul(p.firsts, m.own[i])
	row[newWords], row[newOwn], row[newOverview] = p.news, mul(p.news, m.own[i]), mul(p.news, q.overview)
	row[firstMention], row[firstOverview], row[lastMention] = m.firstOf[i], mul(m.firstOf[i], q.overview), m.lastOf[i]
	row[addedBefore], row[addedAfter], row[around] = m.addedBefore[i], m.addedAfter[i], m.around[i]
	row[aroundOwn] = mul(m.around[i], m.own[i])
	start := flag(i == 0 || c.sessions[i] != c.sessions[i-1])
	row[sessionStart] = start
	if c.named || !c.isUser(i) {
		return
	}
	row[userNames], row[userNamesOverview] = p.names, row[namesOverview]
	row[userNumbers], row[userNumbersOverview] = p.numbers, mul(p.numbers, q.overview)
	row[userFirsts] = p.firsts
	row[userNews], row[userNewsOverview] = p.news, row[newOverview]
	row[userFirstMention], row[userAround] = m.firstOf[i], m.around[i]
	row[userSessionStart] = start
}

// roleFeatures are those of conversations whose messages do not name their speakers.
func (c *Corpus) roleFeatures(q *question, m *matches, i int, row *Row) {
	if c.named {
		return
	}
	p := &c.prepared[i]
	if !c.isUser(i) {
		row[model] = one
		row[modelOwn], row[modelPrevious] = m.own[i], row[previous]
		row[modelOverview], row[modelOverviewOwn] = q.overview, mul(q.overview, m.own[i])
		return
	}
	row[user] = one
	row[userOwn], row[userFeedback], row[userStretch] = m.own[i], m.feedback[i], m.stretch[i]
	row[userCue] = flag(p.Cue)
	row[userCueAdvice], row[userCueOwn] = mul(row[userCue], q.advice), mul(row[userCue], m.own[i])
	row[userPrefers] = flag(p.Prefers)
	row[userPrefersAdvice], row[userPrefersOwn] = mul(row[userPrefers], q.advice), mul(row[userPrefers], m.own[i])
	row[userOverview] = q.overview
	row[userOverviewOwn], row[userOverviewStretch] = mul(q.overview, m.own[i]), mul(q.overview, m.stretch[i])
	row[userNumber] = flag(p.numbers > 0)
	row[userPrevious], row[userNext] = row[previous], row[next]
	row[userPrevious2], row[userNext2] = row[previous2], row[next2]
	row[userCovered], row[userCoveredSquared] = row[covered], row[coveredSquared]
	row[userRarest], row[userAbsolute] = row[rarest], row[absolute]
	row[userUnmatched] = row[unmatched]
	row[userUnmatchedOverview] = mul(row[unmatched], q.overview)
	row[userSize], row[userCoveredSize] = p.logCost, mul(p.logCost, m.covered[i])
	row[userName] = m.names[i]
}

func at(values []fixed, i int) fixed {
	if i < 0 {
		return 0
	}
	return values[i]
}

func at32(values []int, i int) int {
	if i < 0 {
		return -1
	}
	return values[i]
}
