// Package quirks has the tests of quirks that concern several dialects. A test has the id of
// its quirk in its name; docs/quirks.md lists them.
package quirks
