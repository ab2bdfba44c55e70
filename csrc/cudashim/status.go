package cudashim

import "fmt"

// Codes of the driver that Open itself returns.
const (
	NoLibrary  = 303 // no library could be loaded
	Incomplete = 302 // the library lacks functions that are needed
)

// Status is what Open has found.
type Status struct {
	// Library is the file that was opened, as it was named; "" if none could be.
	Library string
	// Version is the CUDA version of the driver, 12080 for 12.8; 0 if it tells none.
	Version int
	// LoadError is the dynamic linker's text where no library could be loaded.
	LoadError string
	// Missing are the functions known here that the library lacks.
	Missing []string
	// Emulated says that the library is the emulated device, no driver.
	Emulated bool
}

// Error is a failed call of the driver.
type Error struct {
	Op     string // the driver's function, or "open"
	Code   int    // the driver's; NoLibrary or Incomplete for Open
	Detail string // what else is known, such as the linker's text; may be ""
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: CUDA error %d", e.Op, e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}
