package turn

import (
	"bytes"
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// View decides what a model is shown of a conversation: a [window.View], or one that is made of package window's parts,
// such as the view of a crew's role. Its JSON is kept with each request, so that a [ViewReader] can read it again.
type View interface {
	// Build decides what the view shows of a log. The same input over the same log gives an equal plan.
	Build(source window.Source, in window.Input) (*continuo.Plan, error)
	// CheckFits reports, as Build would, that a new user message cannot be shown whatever is left out.
	CheckFits(in window.Input, message continuo.Content) error
	// MaxMessages is how many messages the view shows at most; 0 for any number.
	MaxMessages() int
}

// ViewReader reads a view that was kept with a request.
type ViewReader func(stored json.RawMessage) (View, error)

// ReadWindowView is the ViewReader of a [window.View]. It refuses what is a view of another package.
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
