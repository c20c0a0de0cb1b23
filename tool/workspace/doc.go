// Package workspace provides the tools with which a model works in a directory: it lists,
// reads, searches, writes and patches files, and runs commands if they are allowed.
//
//	ws, err := workspace.Open(".", workspace.Options{})
//	defer ws.Close()
//	box, err := tool.NewBox(ws.Tools()...)
//
// # Files
//
// Every path goes through [os.Root]: neither .. nor an absolute path nor a symlink leads
// outside, even if it is created while a tool runs. Absolute paths within the directory are
// treated as relative ones. Reading follows symlinks that stay within; changes follow none.
// Devices, pipes and sockets are not opened. Files are replaced by renaming: a reader sees the
// old content or the new, and a hard link to a file outside is replaced, not written through.
// Reading does follow such a hard link, and file systems that are mounted in the directory are
// part of it. Directories such as .git are write-protected (see [Options.Protected]). List and
// search skip what the .gitignore files of the directory exclude; other git settings
// (.git/info/exclude, the user's own) are not read.
//
// write_file, apply_patch and shell need the approval of a human unless they are listed in
// [Options.NoApproval]. A call that cannot succeed whatever the files contain is refused before
// a human is asked. Other errors are found when the call runs, so that the calls of one
// response can build on each other: they run one after the other, in the order of the model.
//
// # Commands
//
// There is no tool for commands unless [Options.Shell] is set. It then runs one program with
// its arguments, without a shell, if [Shell.Allow] permits it. [Shell] describes the limits of
// a command, and [Sandbox] its confinement.
//
// Rules about calls are in package tool/policy.
package workspace
