// Package storage has what session stores of all kinds share and what they must agree on:
// limits of what can be stored, and the errors of lost races and of newer formats.
package storage
