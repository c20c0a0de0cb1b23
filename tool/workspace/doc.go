// Package workspace has the tools by which a model works in a folder: it lists,
// reads, searches, writes and patches files, and runs commands if it is allowed
// to.
//
//	ws, err := workspace.Open(".", workspace.Options{})
//	defer ws.Close()
//	box, err := tool.NewBox(ws.Tools()...)
//
// # Files
//
// Every path goes through [os.Root]: neither .. nor an absolute path nor a symlink
// leads outside, also not one that is put in place while a tool runs. Absolute
// paths within the folder are taken as relative ones. Reading follows symlinks that
// stay within; changes follow none. Devices, pipes and sockets are not opened.
// Files are replaced by renaming, so that a reader sees the old content or the new,
// and a hard link to a file outside is cut off rather than written through; reading
// does read it, and other file systems that are mounted in the folder are part of
// it. What is named .git and its like is write-protected (see [Options.Protected]).
// List and search leave out what .gitignore files of the folder do; git's other
// places for that (.git/info/exclude, the user's own) are not looked at.
//
// write_file, apply_patch and shell need a human's approval unless
// [Options.NoApproval] says otherwise. What cannot be done whatever the files hold is
// refused before anybody is asked; all else when it is its turn, so that the calls
// of one answer build on each other: they run one after the other, as the model
// wrote them.
//
// # Commands
//
// There is no tool for commands until [Options.Shell] is set, and then it runs one
// program with its arguments, without a shell, if [Shell.Allow] agrees. See [Shell]
// for what bounds a command and [Sandbox] for what confines it.
//
// It is not the place for rules about calls: package tool/policy has those.
package workspace
