package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// edit is a change of one file.
type edit struct {
	rel string
	// before is the current content; nil if the file does not exist. It is compared again right
	// before the change.
	before *content
	// after is the new content; with remove the file is deleted.
	after  []byte
	remove bool
	// mode is the mode of a moved file. Zero keeps the mode, or uses the default for new files.
	mode fs.FileMode
	// parents creates missing directories.
	parents bool
}

// transaction changes several files or none. Everything that can fail for lack of space or
// permissions is done first, in temporary files in the same directories. Then these are renamed
// into place, and if that fails, the changes are undone. A crash in between can leave files
// named .dragoman-*.
type transaction struct {
	w     *Workspace
	edits []*staged
	// undo reverts the changes, the last first; made are directories.
	undo []func() error
	made []string
	done bool
}

// staged is an edit whose new content is on disk.
type staged struct {
	edit
	dir  *os.Root
	base string
	// newFile names the file with the new content, and oldFile the one with the old; "" if
	// there is none.
	newFile, oldFile string
}

func (w *Workspace) begin() *transaction { return &transaction{w: w} }

func (tx *transaction) put(e edit) { tx.edits = append(tx.edits, &staged{edit: e}) }

// errRolledBack is part of the error after a failed change that was undone.
var errRolledBack = errors.New("nothing was changed")

// commit makes the changes. After an error nothing is changed, or the error says what is.
func (tx *transaction) commit() error {
	err := tx.stage()
	for i := 0; err == nil && i < len(tx.edits); i++ {
		err = tx.apply(tx.edits[i])
	}
	if err == nil {
		tx.done = true
		return nil
	}
	var stuck []error
	for _, undo := range slices.Backward(tx.undo) {
		if e := undo(); e != nil {
			stuck = append(stuck, e)
		}
	}
	if len(stuck) > 0 {
		return fmt.Errorf("%w; some changes could not be undone: %w", err, errors.Join(stuck...))
	}
	return fmt.Errorf("%w; %w", err, errRolledBack)
}

// stage opens the directories and writes the new contents to temporary files next to the files.
func (tx *transaction) stage() error {
	for _, s := range tx.edits {
		var made func(string)
		if s.parents {
			made = func(rel string) { tx.made = append(tx.made, rel) }
		}
		var err error
		if s.dir, s.base, err = tx.w.folder(s.rel, made); err != nil {
			return err
		}
		if s.remove {
			continue
		}
		mode := s.mode
		if s.before != nil {
			mode = s.before.mode
		}
		s.newFile = tempName()
		if err := tx.step("stage"); err != nil {
			return err
		}
		if err := writeNew(s.dir, s.newFile, s.after, mode); err != nil {
			return explain(s.rel, err)
		}
	}
	return nil
}

func tempName() string { return ".dragoman-" + rand.Text() }

// writeNew writes a file that does not exist yet; a zero mode means the system's default.
func writeNew(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && mode != 0 {
		err = f.Chmod(mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// apply moves the new content of one file into place.
func (tx *transaction) apply(s *staged) error {
	if err := tx.step("apply"); err != nil {
		return err
	}
	if err := s.unchanged(tx.w); err != nil {
		return err
	}
	switch {
	case s.remove:
		kept := tempName()
		if err := s.dir.Rename(s.base, kept); err != nil {
			return explain(s.rel, err)
		}
		s.oldFile = kept
		tx.undo = append(tx.undo, s.restore)
	case s.before == nil:
		if err := s.create(); err != nil {
			return explain(s.rel, err)
		}
		tx.undo = append(tx.undo, func() error { return s.dir.Remove(s.base) })
	default:
		if err := s.keepOld(); err != nil {
			return explain(s.rel, err)
		}
		if err := s.dir.Rename(s.newFile, s.base); err != nil {
			return explain(s.rel, err)
		}
		tx.undo = append(tx.undo, s.restore)
	}
	return nil
}

// unchanged makes sure that the file still has the content that the change was made for.
func (s *staged) unchanged(w *Workspace) error {
	info, err := s.dir.Lstat(s.base)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.before == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed meanwhile", quoteShort(s.rel))
	case err != nil:
		return explain(s.rel, err)
	case s.before == nil:
		return fmt.Errorf("%s was created meanwhile", quoteShort(s.rel))
	}
	if err := wantRegular(s.rel, info); err != nil {
		return err
	}
	f, err := s.dir.OpenFile(s.base, os.O_RDONLY|openWithoutWaiting, 0)
	if err != nil {
		return explain(s.rel, err)
	}
	defer closeQuietly(f)
	opened, err := f.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return fmt.Errorf("%s was replaced meanwhile", quoteShort(s.rel))
	}
	data, err := w.readAll(f, s.rel)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, s.before.data) {
		return fmt.Errorf("%s was changed meanwhile", quoteShort(s.rel))
	}
	return nil
}

// create gives the new content its name, unless another program has taken it.
func (s *staged) create() error {
	err := s.dir.Link(s.newFile, s.base)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// A file system without hard links: it was not there a moment ago.
	return s.dir.Rename(s.newFile, s.base)
}

// keepOld stores the old content under another name while it may be needed.
func (s *staged) keepOld() error {
	kept := tempName()
	if err := s.dir.Link(s.base, kept); err != nil {
		if err := writeNew(s.dir, kept, s.before.data, s.before.mode); err != nil {
			return err
		}
	}
	s.oldFile = kept
	return nil
}

// restore puts the old content back. If that fails, it stays under its other name.
func (s *staged) restore() error {
	kept := s.oldFile
	s.oldFile = ""
	if err := s.dir.Rename(kept, s.base); err != nil {
		return fmt.Errorf("the old content of %s is now in %s in the same folder", quoteShort(s.rel), kept)
	}
	return nil
}

// end removes temporary files. Call it once, whatever commit returns.
func (tx *transaction) end() {
	for _, s := range tx.edits {
		if s.dir == nil {
			continue
		}
		for _, name := range [...]string{s.newFile, s.oldFile} {
			if name != "" {
				_ = s.dir.Remove(name) // it may have been renamed into its place
			}
		}
		closeQuietly(s.dir)
	}
	if tx.done {
		return
	}
	for _, rel := range slices.Backward(tx.made) {
		_ = tx.w.root.Remove(rel) // only if it is empty
	}
}

// step lets tests make a step fail.
func (tx *transaction) step(name string) error {
	if tx.w.fault == nil {
		return nil
	}
	return tx.w.fault(name)
}
