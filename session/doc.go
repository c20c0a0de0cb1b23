// Package session keeps conversations, and what became of their effects.
package session
