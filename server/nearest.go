package server

import "github.com/continuo-log/continuo/internal/nearest"

// suggestion names the nearest known name, or lists the known names.
func suggestion(name string, known []string) string {
	if found := nearest.Name(name, known); found != "" {
		return "; did you mean " + found + "?"
	}
	if len(known) == 0 {
		return "; there are none"
	}
	return "; known are " + joined(known)
}
