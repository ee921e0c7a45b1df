package api

import "slices"

// Operations is the table of all operations, in the order of the index page.
func (s *Service) Operations() []Operation {
	return slices.Concat(s.chatOperations(), s.workflowOperations(), s.runOperations(), s.repairOperations(),
		s.crewOperations(), s.crewSessionOperations(), s.crewContextOperations(), s.agentOperations(), s.serviceOperations())
}
