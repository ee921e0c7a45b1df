package fs

import "fmt"

// within checks that a number is within its bounds; 0 means the default.
func within(name string, number, most int) error {
	if number < 0 || number > most {
		return fmt.Errorf("%s is %d; allowed is 1 to %d", name, number, most)
	}
	return nil
}
