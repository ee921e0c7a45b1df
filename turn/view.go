package turn

import (
	"bytes"
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// View decides which messages of a conversation a model is shown: a [window.View], or a view that is built from parts
// of package window, such as the view of a crew's role. Its JSON is stored with each request, and a [ViewReader]
// decodes it.
type View interface {
	// Build plans what the view shows of a log. The same input over the same log gives an equal plan.
	Build(source window.Source, in window.Input) (*window.Plan, error)
	// CheckFits returns the error of Build when a new user message cannot fit, whatever else is left out.
	CheckFits(in window.Input, message continuo.Content) error
	// MaxMessages is the maximum number of messages that the view shows; 0 for no limit.
	MaxMessages() int
}

// ViewReader decodes a view that was stored with a request.
type ViewReader func(stored json.RawMessage) (View, error)

// ReadWindowView is the ViewReader of a [window.View]. It refuses a view of another package.
func ReadWindowView(stored json.RawMessage) (View, error) {
	var view window.View
	decoder := json.NewDecoder(bytes.NewReader(stored))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&view); err != nil {
		return nil, fmt.Errorf("read view: %w", err)
	}
	return view, nil
}

// noView refuses a runner or a request without a view.
func noView(view View) error {
	if view == nil {
		return fmt.Errorf("%w: no view says what the model is shown", continuo.ErrInvalid)
	}
	return nil
}
