//go:build !linux

package store

import "errors"

// exchange makes two folders change places in one step, where a system can.
func exchange(_, _ string) error { return errors.ErrUnsupported }

// adviseHuge asks for huge pages, where a system can give them.
func adviseHuge([]byte) {}
