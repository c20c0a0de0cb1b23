// Package contexts defines values that cross package boundaries in a [context.Context],
// because the interface between the packages is public and cannot carry them: the
// policy that gates model calls, and how a chain builds the request for each of its
// models.
package contexts
