package api

import "slices"

// Operations is the table of all operations.
func (s *Service) Operations() []Operation {
	return slices.Concat(
		s.chatOperations(), s.conversationOperations(), []Operation{s.importOperation()}, s.entryOperations(), s.contextOperations(), s.turnOperations(),
		s.searchOperations(), s.workflowOperations(), s.runOperations(), s.repairOperations(), s.crewOperations(),
		s.crewSessionOperations(), s.crewContextOperations(), s.taskOperations(), s.agentOperations(), s.serviceOperations(),
	)
}
