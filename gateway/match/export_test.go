package match

import continuo "github.com/continuo-log/continuo"

// Said returns what an entry says in canonical form, as if it came before the first answer.
func Said(e *continuo.Entry) (said []string) {
	if e.Hidden {
		return nil
	}
	for _, u := range units(e, false) {
		said = append(said, string(u.tag)+u.text)
	}
	return said
}
