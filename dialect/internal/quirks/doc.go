// Package quirks tests quirks that concern several dialects. The name of a test has the id of its
// quirk; docs/quirks.md lists them.
package quirks
