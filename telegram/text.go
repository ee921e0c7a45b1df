package telegram

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxUnits is the length limit of a Telegram message, in UTF-16 code units.
const maxUnits = 4096

// units counts the UTF-16 code units of a rune.
func units(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

func countUnits(text string) (count int) {
	for _, r := range text {
		count += units(r)
	}
	return count
}

// clean converts text to what Telegram accepts and returns unchanged: valid UTF-8 without control characters except
// tabs and line feeds.
func clean(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, string(utf8.RuneError)), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r):
			return -1
		default:
			return r
		}
	}, text)
}

// oneLine makes text one line of at most so many characters.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// joins reports whether two runes belong to what people see as one character. In doubt it returns true.
func joins(before, after rune) bool {
	const joiner = '\u200D'
	switch {
	case before == joiner || after == joiner || unicode.In(after, unicode.M):
		return true
	case after >= 0x1F3FB && after <= 0x1F3FF, after >= 0xE0020 && after <= 0xE007F: // skin tones, tags of flags
		return true
	default:
		return isRegional(before) && isRegional(after)
	}
}

// isRegional reports whether two runes of this kind make a flag.
func isRegional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }
