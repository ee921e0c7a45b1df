package rawjson

import "bytes"

// Find returns where the value of a member of an object begins and ends in its JSON; ok is false where the object has no
// such member, or is no object. The data must be valid JSON. The first of several members of that name counts.
func Find(data []byte, name string) (from, to int, ok bool) {
	at := skipSpace(data, 0)
	if at == len(data) || data[at] != '{' {
		return 0, 0, false
	}
	quoted := MustMarshal(name)
	for at = skipSpace(data, at+1); at < len(data) && data[at] == '"'; {
		key := data[at:skipValue(data, at)]
		from = skipSpace(data, skipSpace(data, at+len(key))+1)
		to = skipValue(data, from)
		if bytes.Equal(key, quoted) {
			return from, to, true
		}
		at = skipSpace(data, to)
		if at < len(data) && data[at] == ',' {
			at = skipSpace(data, at+1)
		}
	}
	return 0, 0, false
}

func skipSpace(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns where the value at a position ends.
func skipValue(data []byte, at int) int {
	depth := 0
	for at < len(data) {
		switch data[at] {
		case '"':
			at = skipString(data, at)
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth < 0 {
				return at // the end of what a number or a literal is in
			}
			if depth == 0 {
				return at + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return at
}

// skipString returns where the string at a position ends.
func skipString(data []byte, at int) int {
	for at++; at < len(data); at++ {
		next := bytes.IndexByte(data[at:], '"')
		if next < 0 {
			return len(data)
		}
		at += next
		escapes := 0
		for data[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
	}
	return at
}
