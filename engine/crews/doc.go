// Package crews begins, resumes and follows the cycles of crews, and manages the programs that answer for roles. Package
// durable drives a cycle; its machine (machine.go) says what its steps are.
package crews
