//go:build !unix

package fs

// withoutWaiting is nothing where named pipes are no files of a folder.
const withoutWaiting = 0
