//go:build !(cuda && cgo && linux && (amd64 || arm64))

package cudashim

import "errors"

// Built says whether this program can open a driver.
const Built = false

// Open refuses: the program was built without GPU support.
func Open(string) error { return errors.New("built without GPU support: tag cuda") }

// State is empty: nothing has been opened.
func State() Status { return Status{} }
