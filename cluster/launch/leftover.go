package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// folderPattern is that of the folders of launchers, below that of temporary files.
const folderPattern = "dorylus-launch-"

// openFolder makes a folder that belongs to this launcher for as long as it lives, and
// removes those of launchers that were killed.
func openFolder() (dir string, mark *os.File, err error) {
	sweepFolders()
	if dir, err = os.MkdirTemp("", folderPattern); err != nil {
		return "", nil, fmt.Errorf("make a folder for certificates: %w", err)
	}
	if mark, err = markFolder(dir); err != nil {
		return "", nil, errors.Join(fmt.Errorf("mark the folder for certificates: %w", err), os.RemoveAll(dir))
	}
	return dir, mark, nil
}

// sweepFolders removes what launchers of this user have left. It is no matter if it cannot.
func sweepFolders() {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), folderPattern+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		if deserted(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}
