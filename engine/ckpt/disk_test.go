package ckpt

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// badDisk fails at its n-th change; a dead one then fails for ever, as if the
// process had been killed there.
type badDisk struct {
	quickDisk
	n    int // changes until it fails
	dead bool
	err  error
}

func (d *badDisk) next() error {
	d.n--
	if d.n == 0 || d.n < 0 && d.dead {
		return d.err
	}
	return nil
}

func (d *badDisk) mkdir(path string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.quickDisk.mkdir(path)
}

func (d *badDisk) create(path string) (file, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	f, err := d.quickDisk.create(path)
	return &badFile{f, d}, err
}

func (d *badDisk) rename(from, to string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.quickDisk.rename(from, to)
}

// remove dies in the middle: the manifest's removal is a change of its own.
func (d *badDisk) remove(path string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.quickDisk.remove(path)
}

func (d *badDisk) syncDir(path string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.quickDisk.syncDir(path)
}

// badFile writes half of the data when its disk fails.
type badFile struct {
	file
	d *badDisk
}

func (f *badFile) Write(b []byte) (int, error) {
	if err := f.d.next(); err != nil {
		n, _ := f.file.Write(b[:len(b)/2])
		return n, err
	}
	return f.file.Write(b)
}

func (f *badFile) Sync() error {
	if err := f.d.next(); err != nil {
		return err
	}
	return f.file.Sync()
}

// TestKilledAnywhere ends a save at each of its changes: the newest complete
// checkpoint is then the old one or the new one, whole, and the next save works and
// leaves no rubbish.
func TestKilledAnywhere(t *testing.T) {
	killed := errors.New("killed")
	for _, c := range []struct {
		what  string
		epoch int
		keep  int
	}{{"a new epoch", 20, 1}, {"a new epoch beside the old", 20, 2}, {"the same epoch again", 10, 1}} {
		points := 0
		for n := 1; ; n++ {
			dir := t.TempDir()
			mustSave(t, dir, 10, 1)
			again := sample(c.epoch)
			again.Best.Val = 0.9 // so that the second of an epoch can be told from the first
			d := &badDisk{n: n, dead: true, err: killed}
			_, _, err := save(d, dir, again, c.keep)
			if d.n > 0 {
				break // it was through before
			}
			points++
			if !errors.Is(err, killed) {
				t.Errorf("%s, killed at change %d: %v", c.what, n, err)
			}
			path, err := Latest(dir)
			if err != nil {
				t.Errorf("%s, killed at change %d: %v", c.what, n, err)
				continue
			}
			got, err := Load(path)
			if err != nil {
				t.Errorf("%s, killed at change %d: %v", c.what, n, err)
				continue
			}
			if same(got, sample(10)) != nil && same(got, again) != nil {
				t.Errorf("%s, killed at change %d: %s is neither the old checkpoint nor the new one", c.what, n, path)
			}
			mustSave(t, dir, 30, 1)
			if left := names(t, dir); !slices.Equal(left, []string{"epoch-000030"}) {
				t.Errorf("%s, killed at change %d: the next save leaves %v", c.what, n, left)
			}
		}
		if points < 18 {
			t.Errorf("%s: only %d changes were tried", c.what, points)
		}
	}
}

// TestFullDisk lets each change fail once for want of space: the error says so, and
// the old checkpoint stays, alone until the new one is complete.
func TestFullDisk(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		mustSave(t, dir, 10, 1)
		d := &badDisk{n: n, err: syscall.ENOSPC}
		path, _, err := save(d, dir, sample(20), 1)
		if d.n > 0 {
			if err != nil || n < 18 {
				t.Errorf("%d changes make a checkpoint: %v", n-1, err)
			}
			break
		}
		if err == nil {
			if len(names(t, dir)) != 1 {
				t.Errorf("change %d failed, Save did not, and there are %v", n, names(t, dir))
			}
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) {
			t.Errorf("change %d: %v", n, err)
		}
		latest, e := Latest(dir)
		if e != nil {
			t.Errorf("change %d: %v", n, e)
			continue
		}
		if _, e := Load(latest); e != nil {
			t.Errorf("change %d: %v", n, e)
		}
		if path == "" && filepath.Base(latest) != "epoch-000010" && filepath.Base(latest) != "epoch-000020" {
			t.Errorf("change %d: the latest is %s", n, latest)
		}
	}
}
