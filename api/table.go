package api

import "slices"

// Operations is the table of all operations, in the order in which they are documented.
func (s *Service) Operations() []Operation {
	return slices.Concat(
		s.chatOperations(),
		s.conversationOperations(), []Operation{s.importOperation()}, s.entryOperations(), s.liveOperations(), s.contextOperations(), []Operation{s.compareOperation()}, s.searchOperations(), s.memoryOperations(),
		s.turnOperations(), s.feedOperations(),
		s.workflowOperations(), s.runOperations(), s.repairOperations(),
		s.crewOperations(), s.crewSessionOperations(), s.crewContextOperations(),
		s.taskOperations(), s.agentOperations(),
		s.sessionOperations(),
		s.serviceOperations(), s.usageOperations(), s.auditOperations(), []Operation{s.connectOperation()},
	)
}
