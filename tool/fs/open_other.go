//go:build !unix

package fs

// withoutWaiting is 0 on systems where named pipes are not files of a folder.
const withoutWaiting = 0
