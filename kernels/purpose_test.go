package kernels

import (
	"errors"
	"testing"
)

// asked is a device that remembers how it was asked for memory.
type asked struct {
	Device
	how string
}

func (a *asked) Alloc(rows, cols int) (*Mat, error) { a.how = "Alloc"; return nil, errors.New("full") }

type askedFor struct{ asked }

func (a *askedFor) AllocFor(p Purpose, rows, cols int) (*Mat, error) {
	a.how = p.String()
	return &Mat{Rows: rows, Cols: cols}, nil
}

func TestAllocFor(t *testing.T) {
	plain, choosy := &asked{}, &askedFor{}
	if _, err := AllocFor(plain, Features, 2, 3); err == nil || plain.how != "Alloc" {
		t.Errorf("a device without AllocFor was asked by %q and gave the error %v, want Alloc and its error", plain.how, err)
	}
	m, err := AllocFor(choosy, Published, 2, 3)
	if err != nil || m.Rows != 2 || m.Cols != 3 || choosy.how != "published rows" {
		t.Errorf("a device with AllocFor was asked for %q and gave %+v, %v", choosy.how, m, err)
	}
	if got := Purpose(200).String(); got != "unknown" {
		t.Errorf("purpose 200 is %q", got)
	}
}
