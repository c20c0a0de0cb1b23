package session

import "iter"

// Names for the tests of the package.

func Fail[T any](err error) iter.Seq2[T, error] { return fail[T](err) }

var CheckID = checkID
