package gemini

// Texts joins the texts of the parts of one content: pieces that follow each other are one text, others are separated
// by blank lines. The zero value is ready.
type Texts struct {
	last          byte // kind of the part before: 't' text, 'r' thought, 'o' other
	text, thought bool // there has been some
}

// Add takes the next part and returns what it adds to the text and to the reasoning.
func (t *Texts) Add(part Part) (text, reasoning string) {
	kind := byte('o')
	switch {
	case part.HasText && part.Text == "":
		return "", "" // carries a signature only
	case part.HasText && part.Thought:
		kind = 'r'
		if reasoning = part.Text; t.thought && t.last != kind {
			reasoning = "\n\n" + reasoning
		}
		t.thought = true
	case part.HasText:
		kind = 't'
		if text = part.Text; t.text && t.last != kind {
			text = "\n\n" + text
		}
		t.text = true
	}
	t.last = kind
	return text, reasoning
}
