// Package shell analyzes shell commands that models write, without running them. It lists the
// programs of a command ([Parse]), splits a command that needs no shell into words
// ([Command.Words]), and checks commands against a list of allowed ones ([Allow]).
//
//	list, err := shell.Allow("go test ...", "git log ... !--output !-o")
//	words, err := list.Check(`go test -run 'A|B' ./...`)
//
// Commands are parsed, not searched as text, so quoting hides nothing. Anything that is known only
// when the command runs counts as unknown.
//
// Package tool/workspace runs commands and checks them against a list. The expressions of package
// tool/policy get a [Command] from shell(string).
package shell
