//go:build unix

package launch

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// markName is a file in a launcher's folder that it keeps locked. The kernel unlocks it
// when the launcher ends, however that comes about.
const markName = "lock"

// markFolder locks dir. The file gets its name once it is locked: nobody finds it without.
func markFolder(dir string) (*os.File, error) {
	f, err := os.Create(filepath.Join(dir, markName+".new"))
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) {
		return f, nil // then nobody takes the folder for deserted
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, markName))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// deserted says that the launcher of dir has marked it, and is gone.
func deserted(dir string) bool {
	f, err := os.Open(filepath.Join(dir, markName))
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
