package fs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// decode reads a call's arguments, strictly: a key that the tool does not know is a mistake that the
// model can correct only when it is told.
func decode(text, example string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	var object json.RawMessage
	err := decoder.Decode(&object)
	switch {
	case err != nil:
	case !bytes.HasPrefix(object, []byte("{")):
		err = errors.New("this is no object")
	case strings.TrimSpace(text[decoder.InputOffset():]) != "":
		err = errors.New("there is more after the object")
	default:
		decoder = json.NewDecoder(bytes.NewReader(object))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(into)
	}
	if err != nil {
		return fmt.Errorf("the arguments must be one JSON object such as %s: %w", example, err)
	}
	return nil
}

// within checks that a number is in its bounds; 0 stands for its default.
func within(name string, number, most int) error {
	if number < 0 || number > most {
		return fmt.Errorf("%s is %d; allowed is 1 to %d", name, number, most)
	}
	return nil
}
