// Package shell reads shell commands that models write, without running them. It
// says what a command would do ([Parse]), takes apart one that needs no shell
// ([Command.Words]), and holds commands against a list of those that may run
// ([Allow]).
//
//	list, err := shell.Allow("go test ...", "git log ... !--output !-o")
//	words, err := list.Check(`go test -run 'A|B' ./...`)
//
// Commands are parsed, never searched: quoting hides nothing, and what is only
// known when the command runs counts as unknown.
//
// Package tool/workspace runs commands and checks them against a list. The expressions of
// package tool/policy get a [Command] from shell(string).
package shell
