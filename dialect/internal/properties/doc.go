// Package properties tests laws that hold in every dialect for any conversation: append-only
// growth, a switch of provider at any turn, and streams whose meaning does not depend on how their
// bytes are split.
package properties
