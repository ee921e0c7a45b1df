package continuo

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// MaxLabelBytes bounds the value of a label. A metadata member with a longer value is kept but is not a label.
const MaxLabelBytes = 512

// MaxLabels bounds how many labels a list or a search may filter by.
const MaxLabels = 8

// CheckLabels refuses labels that cannot be used as a filter; ErrInvalid.
func CheckLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return fmt.Errorf("%w: a list is filtered by at most %d members of the metadata, not %d", ErrInvalid, MaxLabels, len(labels))
	}
	for name, value := range labels {
		switch {
		case name == "":
			return fmt.Errorf("%w: the name of a member of the metadata is empty", ErrInvalid)
		case len(value) > MaxLabelBytes:
			return fmt.Errorf("%w: the value of %q must have at most %d bytes", ErrInvalid, name, MaxLabelBytes)
		case strings.ContainsRune(name+value, 0):
			return fmt.Errorf("%w: the filter %q has a NUL character", ErrInvalid, name)
		}
	}
	return nil
}

// LabelsOf returns the members of a conversation's metadata that lists and searches can filter by: strings, numbers and
// booleans, as text. A number keeps its JSON spelling. Engines store the labels beside the metadata.
func LabelsOf(metadata json.RawMessage) map[string]string {
	object, err := rawjson.ParseObject(metadata)
	if err != nil {
		return nil
	}
	labels := map[string]string{}
	for _, member := range object {
		if text, ok := labelOf(member.Value); ok && len(text) <= MaxLabelBytes && !strings.ContainsRune(member.Key+text, 0) {
			labels[member.Key] = text
		}
	}
	if len(labels) == 0 {
		return nil
	}
	return labels
}

func labelOf(value json.RawMessage) (text string, ok bool) {
	if text, ok := rawjson.String(value); ok {
		return text, true
	}
	text = strings.TrimSpace(string(value))
	return text, text != "" && text != "null" && text[0] != '{' && text[0] != '['
}
