package window

import continuo "github.com/continuo-log/continuo"

// turnLeftOut stands in the place of the oldest messages of a role's own turn.
const turnLeftOut = moreBegin + " Earlier tool calls of your turn are left out."

// turnMarker stands in a gap of the role's own turn.
func (p *rolePlanner) turnMarker() continuo.Message {
	message := continuo.Message{Role: continuo.User, Content: continuo.Text(turnLeftOut)}
	message.Size = p.base.shaper.size(&message, false)
	return message
}

// arrangeTurn takes a layout, and cuts the messages of the role's own turn down until they fit behind it: full outputs
// become previews, previews one line, and then the oldest groups go. It reports false where not even the newest fits.
func (p *rolePlanner) arrangeTurn(l layout, limits budget) bool {
	shaper := p.base.shaper
	pieces := make([]piece, len(p.log.turn))
	total := p.size(l)
	for i, u := range p.log.turn {
		pieces[i] = piece{unit: u, messages: u.at(shaper, whole).messages}
		total = total.Add(u.at(shaper, whole).size)
	}
	p.placed, p.openCut = l, limits.exceeded(total)
	for _, to := range []level{preview, line} {
		for i := 0; i < len(pieces) && limits.exceeded(total) != ""; i++ {
			u := pieces[i].unit
			total = minus(total, u.at(shaper, pieces[i].level).size).Add(u.at(shaper, to).size)
			pieces[i] = piece{unit: u, level: to, messages: u.at(shaper, to).messages}
		}
	}
	marked := p.turnMarker()
	for gone := 0; len(pieces) > 1 && limits.exceeded(total) != ""; gone++ {
		if gone == 0 {
			total = total.Add(marked.Size)
		}
		total = minus(total, pieces[0].unit.at(shaper, line).size)
		pieces = pieces[1:]
	}
	if len(pieces) < len(p.log.turn) {
		pieces = append([]piece{{messages: []continuo.Message{marked}}}, pieces...)
	}
	p.open = pieces
	return limits.exceeded(total) == ""
}

func minus(s, other continuo.Size) continuo.Size {
	return continuo.Size{Messages: s.Messages - other.Messages, Chars: s.Chars - other.Chars, Tokens: s.Tokens - other.Tokens}
}
