// Package properties has the tests of laws that hold in every dialect for any conversation:
// append-only growth, switching the provider at any turn, and streams that mean the same
// however they are cut.
package properties
