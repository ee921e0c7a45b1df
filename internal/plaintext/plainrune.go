package plaintext

import (
	"strings"
	"unicode/utf8"
)

// PlainRune is a character as it looks at a glance: a small letter of ASCII, a plain colon or bracket. Fullwidth,
// mathematical and circled forms are taken for what they stand for, and so are the letters of other scripts that look
// like the ones of labels and headers.
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

// Characters that look like one of ours, and which one.
const (
	lookalikes     = "︓﹕∶꞉ː։׃܃" + "﹙⁽❨⟮" + "﹚⁾❩⟯" + "【〔⟦〖⁅" + "】〕⟧〗⁆" + "аАαΑɑ" + "еЕεΕҽ" + "іІιΙıӏ" + "мМΜ" + "пηոΝ" + "оОοΟօ" + "рРρΡ" + "гᴦᴙ" + "ѕЅꜱʂ" + "тТτΤ" + "υսцՍ" + "сСϲϹ" + "ԁ" + "ԛ" + "уУγΥ" + "хХχΧ"
	lookalikePlain = "::::::::" + "((((" + "))))" + "[[[[[" + "]]]]]" + "aaaaa" + "eeeee" + "iiiiii" + "mmm" + "nnnn" + "ooooo" + "pppp" + "rrr" + "ssss" + "tttt" + "uuuu" + "cccc" + "d" + "q" + "yyyy" + "xxxx"
)
