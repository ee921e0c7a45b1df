package memories

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
)

// ExportHead says what a file is.
type ExportHead struct {
	Continuo  string `json:"continuo" enum:"memory"`
	Version   int    `json:"version"`
	ProjectID string `json:"project_id"`
	UserID    string `json:"user_id,omitempty"`
	// Project says that it is the memory of the project.
	Project bool `json:"project,omitempty"`
}

// The values of an ExportHead.
const (
	exportOf      = "memory"
	exportVersion = 1
)

// Export is everything that is known of an owner.
type Export struct {
	ExportHead
	Facts   []Fact `json:"facts"` // the oldest first, with those that no longer hold
	Profile string `json:"profile"`
}

// Export returns everything that is known of an owner.
func (m *Memories) Export(ctx context.Context, scope continuo.Scope, owner Owner) (Export, error) {
	_, user, err := owner.key(scope)
	if err != nil {
		return Export{}, err
	}
	facts, err := m.List(ctx, scope, Query{Owner: owner, All: true})
	if err != nil {
		return Export{}, err
	}
	slices.Reverse(facts)
	_, known, err := m.known(ctx, scope, owner)
	if err != nil {
		return Export{}, err
	}
	text, _ := memory.Profile(known, m.counter(), memory.ProfileTokens, m.log.Now())
	head := ExportHead{Continuo: exportOf, Version: exportVersion, ProjectID: scope.ProjectID, UserID: user, Project: owner.Project}
	return Export{ExportHead: head, Facts: facts, Profile: text}, nil
}

// check refuses what is not a head of this version.
func (h *ExportHead) check() error {
	switch {
	case h.Continuo != exportOf:
		return fmt.Errorf("this is no export of a memory: the field continuo is %q, and not %q", h.Continuo, exportOf)
	case h.Version != exportVersion:
		return fmt.Errorf("the export has version %d, and this program knows %d", h.Version, exportVersion)
	}
	return nil
}

// checkOwner refuses the memory of another owner.
func (h *ExportHead) checkOwner(user string, project bool) error {
	if h.Project == project && h.UserID == user {
		return nil
	}
	whose := "of the conversations without a user"
	switch {
	case h.Project:
		whose = "of the project " + strconv.Quote(h.ProjectID)
	case h.UserID != "":
		whose = "of the user " + strconv.Quote(h.UserID)
	}
	return fmt.Errorf("%w: the export has the memory %s; name its owner, or allow any user", continuo.ErrInvalid, whose)
}
