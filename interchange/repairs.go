package interchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// repairs collects the repairs of an import.
type repairs struct {
	list  []Repair
	texts map[int][]continuo.Rule // repairs of a message's text, made before it was decoded
	index int                     // of the message that is being decoded
}

// add reports a repair of a draft and marks it.
func (r *repairs) add(d *draft, rule continuo.Rule, format string, args ...any) {
	r.list = append(r.list, Repair{Index: d.record.Index, Rule: rule, Action: fmt.Sprintf(format, args...)})
	d.mark(rule)
}

// decoding reports a repair of the message that is being decoded.
func (r *repairs) decoding(d *draft, rule continuo.Rule, format string, args ...any) {
	d.record.Index = r.index
	r.add(d, rule, format, args...)
}

// rules lists the repairs of a message's text.
func (r *repairs) rules(index int) []continuo.Rule { return r.texts[index] }

func (r *repairs) sorted() []Repair {
	slices.SortStableFunc(r.list, func(a, b Repair) int { return cmp.Compare(a.Index, b.Index) })
	return r.list
}

// clean makes the text of a JSON value valid: bytes that are not UTF-8, and escapes of lone surrogates,
// become U+FFFD each.
func (r *repairs) clean(index int, raw json.RawMessage) json.RawMessage {
	text := func(rule continuo.Rule, action string) {
		if r.texts == nil {
			r.texts = map[int][]continuo.Rule{}
		}
		r.texts[index] = append(r.texts[index], rule)
		r.list = append(r.list, Repair{Index: index, Rule: rule, Action: action})
	}
	if !utf8.Valid(raw) {
		raw = validUTF8(raw)
		text(continuo.RuleInvalidUTF8, "Bytes that are not UTF-8 became U+FFFD.")
	}
	if whole, changed := repairSurrogates(raw); changed {
		raw = whole
		text(RuleLoneSurrogate, "Halves of surrogate pairs became U+FFFD.")
	}
	return raw
}

// validUTF8 replaces each byte that is not UTF-8.
func validUTF8(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	var out []byte
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		out = utf8.AppendRune(out, r)
		raw = raw[size:]
	}
	return out
}

// repairSurrogates replaces escapes of lone surrogates in JSON.
func repairSurrogates(raw []byte) (whole []byte, changed bool) {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw, false
	}
	whole = slices.Clone(raw)
	for i := 0; i < len(whole); i++ {
		if whole[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(whole[i:])
		switch {
		case !ok:
			i++ // a short escape
			continue
		case utf16.IsSurrogate(unit):
			second, _ := escapedUnit(whole[i+6:])
			if utf16.DecodeRune(unit, second) != utf8.RuneError {
				i += 6
			} else {
				copy(whole[i:], `\ufffd`)
				changed = true
			}
		}
		i += 5
	}
	return whole, changed
}

// escapedUnit reads an escape of the form \uXXXX at the beginning of text.
func escapedUnit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(unit), err == nil
}
