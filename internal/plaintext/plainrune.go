package plaintext

import (
	"strings"
	"unicode/utf8"
)

// PlainRune is a character in the form that it looks like: a lower-case letter of ASCII, a plain colon or bracket.
// Fullwidth, mathematical and circled forms become the characters that they stand for, and so do the letters of other
// scripts that look like those of labels and headers.
func PlainRune(r rune) rune {
	switch {
	case r < 0x80:
	case r >= 0xff01 && r <= 0xff5e:
		r -= 0xfee0
	case r >= 0x1d400 && r <= 0x1d6a3:
		r = 'a' + (r-0x1d400)%26
	case r >= 0x24b6 && r <= 0x24e9:
		r = 'a' + (r-0x24b6)%26
	default:
		if at := strings.IndexRune(lookalikes, r); at >= 0 {
			r = rune(lookalikePlain[utf8.RuneCountInString(lookalikes[:at])])
		}
	}
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// Characters that look like an ASCII one, with that character.
const (
	lookalikes     = "︓﹕∶꞉ː։׃܃" + "﹙⁽❨⟮" + "﹚⁾❩⟯" + "【〔⟦〖⁅" + "】〕⟧〗⁆" + "аАαΑɑ" + "еЕεΕҽ" + "іІιΙıӏ" + "мМΜ" + "пηոΝ" + "оОοΟօ" + "рРρΡ" + "гᴦᴙ" + "ѕЅꜱʂ" + "тТτΤ" + "υսцՍ" + "сСϲϹ" + "ԁ" + "ԛ" + "уУγΥ" + "хХχΧ"
	lookalikePlain = "::::::::" + "((((" + "))))" + "[[[[[" + "]]]]]" + "aaaaa" + "eeeee" + "iiiiii" + "mmm" + "nnnn" + "ooooo" + "pppp" + "rrr" + "ssss" + "tttt" + "uuuu" + "cccc" + "d" + "q" + "yyyy" + "xxxx"
)
