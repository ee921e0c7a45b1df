package fulltext

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxMarks is how many consecutive marks count; more are ornament.
const maxMarks = 8

// folder folds one word: it decomposes compatibility forms, drops diacritics, lower-cases letters, and
// composes the result.
type folder struct {
	out     []byte
	spare   []byte
	runes   int
	marks   int  // consecutive ones
	compose bool // the word needs composition
}

func (f *folder) begin() { f.out, f.runes, f.marks, f.compose = f.out[:0], 0, 0, false }

// add adds the next character of the word. Composition joins at most three characters.
func (f *folder) add(char string) {
	if f.runes >= 3*MaxWord {
		return
	}
	r, _ := utf8.DecodeRuneInString(char)
	switch { // frequent simple cases
	case 'а' <= r && r <= 'я' && r != 'й', 0xAC00 <= r && r <= 0xD7A3:
		f.marks = 0
		f.put(r)
		return
	case 'А' <= r && r <= 'Я' && r != 'Й':
		f.marks = 0
		f.put(r + 'а' - 'А')
		return
	}
	forms := norm.NFKD.PropertiesString(char).Decomposition()
	if forms == nil {
		f.addRune(r)
		return
	}
	for len(forms) > 0 {
		r, size := utf8.DecodeRune(forms)
		f.addRune(r)
		forms = forms[size:]
	}
}

// addWide adds a character that is a separate token. It is not decomposed into several characters.
func (f *folder) addWide(char string) {
	r, _ := utf8.DecodeRuneInString(char)
	if 0x4E00 <= r && r <= 0x9FFF || 0x3041 <= r && r <= 0x3096 || 0x30A1 <= r && r <= 0x30FA || r == 'ー' {
		f.put(r) // frequent simple cases
		return
	}
	forms := norm.NFKD.PropertiesString(char).Decomposition()
	for i := 0; i < len(forms); {
		part, size := utf8.DecodeRune(forms[i:])
		if (i == 0) == unicode.IsMark(part) {
			f.put(r)
			return
		}
		i += size
	}
	f.add(char)
}

func (f *folder) addRune(r rune) {
	switch {
	case unicode.IsMark(r):
		if f.runes > 0 && f.marks < maxMarks && !isDiacritic(r) {
			f.put(r)
			f.marks++
			f.compose = true
		}
	case unicode.IsDigit(r):
		f.marks = 0
		f.put(digit(r))
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		f.marks = 0
		f.addLetter(r)
	}
}

func (f *folder) addLetter(r rune) {
	r = unicode.ToLower(unicode.ToUpper(r))
	switch r {
	case 'ß':
		f.put('s')
		r = 's'
	case 'æ':
		f.put('a')
		r = 'e'
	case 'œ':
		f.put('o')
		r = 'e'
	case 'þ':
		f.put('t')
		r = 'h'
	case 'ø':
		r = 'o'
	case 'đ', 'ð':
		r = 'd'
	case 'ł':
		r = 'l'
	case 'ħ':
		r = 'h'
	case 'ŧ':
		r = 't'
	case 'ı':
		r = 'i'
	case 'ٱ':
		r = 'ا'
	case 'ى', 'ی':
		r = 'ي'
	case 'ة', 'ە', 'ہ':
		r = 'ه'
	case 'ک':
		r = 'ك'
	case 'ـ', '\u115F', '\u1160': // kashida; fillers
		return
	}
	f.compose = f.compose || 0x1100 <= r && r <= 0x11FF
	f.put(r)
}

func (f *folder) put(r rune) {
	f.out = utf8.AppendRune(f.out, r)
	f.runes++
}

// word returns the folded word, valid until the next begin.
func (f *folder) word() []byte {
	if f.compose && !norm.NFC.IsNormal(f.out) {
		f.spare = norm.NFC.Append(f.spare[:0], f.out...)
		f.out, f.spare = f.spare, f.out
	}
	if f.runes > MaxWord {
		f.out = firstRunes(f.out, MaxWord)
	}
	return f.out
}

func firstRunes(text []byte, runes int) []byte {
	end := 0
	for ; runes > 0 && end < len(text); runes-- {
		_, size := utf8.DecodeRune(text[end:])
		end += size
	}
	return text[:end]
}

// isDiacritic reports whether dropping a mark leaves the same word: accents, the vowel signs of Arabic and
// Hebrew, the dot below of Devanagari, selectors of variants. The vowel signs of India and of South-East
// Asia, and the voicing of kana, are letters to their readers.
func isDiacritic(r rune) bool {
	switch {
	case 0x0300 <= r && r <= 0x036F, r == '\u093C':
		return true
	case r == '\u3099' || r == '\u309A':
		return false
	}
	return unicode.In(r, unicode.Inherited, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Me)
}

// digit is the ASCII form of a decimal digit. The ten digits of a script are consecutive in Unicode.
func digit(r rune) rune {
	for _, stretch := range unicode.Nd.R16 {
		if rune(stretch.Lo) <= r && r <= rune(stretch.Hi) {
			return '0' + (r-rune(stretch.Lo))%10
		}
	}
	for _, stretch := range unicode.Nd.R32 {
		if rune(stretch.Lo) <= r && r <= rune(stretch.Hi) {
			return '0' + (r-rune(stretch.Lo))%10
		}
	}
	return r
}
