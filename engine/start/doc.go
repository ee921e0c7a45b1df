// Package start begins, resumes and follows the turns of conversations. The turns of one conversation run one after
// another: within this process in their order of arrival (lanes), across processes by the lease that package turn keeps
// in the store.
package start
