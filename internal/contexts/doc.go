// Package contexts has values that cross package borders in a [context.Context], because
// the interface between them is public and has no place for them: the policy that gates
// calls of models, and how a chain builds the request of each of its models.
package contexts
