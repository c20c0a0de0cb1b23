//go:build !unix

package workspace

// openWithoutWaiting is for systems whose folders hold pipes.
const openWithoutWaiting = 0
