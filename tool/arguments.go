package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Decode reads a call's arguments to a struct, strictly: an unknown key is an error, so that the model can
// correct it. The error shows an example of valid arguments.
func Decode(arguments, example string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	var object json.RawMessage
	err := decoder.Decode(&object)
	switch {
	case err != nil:
	case !bytes.HasPrefix(object, []byte("{")):
		err = errors.New("this is no object")
	case strings.TrimSpace(arguments[decoder.InputOffset():]) != "":
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
