package render

import (
	"bytes"
	"encoding/json"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

// Options says which provider a rendering is for.
type Options struct {
	// Provider is the name of the provider that the request goes to: the key of Entry.Vendor. With an empty
	// name no vendor data are sent.
	Provider string
}

// vendor returns the provider's own data on a message, nil when there is none or it is not an object.
func (o Options) vendor(m *window.Message) rawjson.Object {
	if o.Provider == "" || m.Entry == nil || len(m.Entry.Vendor[o.Provider]) == 0 {
		return nil
	}
	object, err := rawjson.ParseObject(m.Entry.Vendor[o.Provider])
	if err != nil {
		return nil
	}
	return object
}

// owns reports whether the provider made the message, or has vendor data on it.
func (o Options) owns(m *window.Message) bool {
	return o.Provider != "" && m.Entry != nil && m.Entry.Vendor[o.Provider] != nil
}

// shownWhole reports whether the plan shows an entry's content as it was stored, so that the vendor's own
// form can replace it.
func shownWhole(m *window.Message) bool {
	if m.Entry == nil {
		return false
	}
	shown, stored := m.Content, m.Entry.Content
	if !shown.IsParts() || !stored.IsParts() {
		return shown.IsParts() == stored.IsParts() && shown.IsText() == stored.IsText() && shown.String() == stored.String()
	}
	if len(shown.Parts()) != len(stored.Parts()) {
		return false
	}
	for i, part := range shown.Parts() {
		if !bytes.Equal(part.Raw, stored.Parts()[i].Raw) {
			return false
		}
	}
	return true
}

// isTrue reports whether a JSON value is true.
func isTrue(value json.RawMessage) bool { return string(bytes.TrimSpace(value)) == "true" }
