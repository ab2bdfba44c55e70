package spill

import (
	"fmt"

	"dorylus/kernels"
)

// slots is how many pieces are under way at most: one that comes, one that is computed,
// one that goes.
const slots = 3

// job is an op as steps over pieces.
type job struct {
	op    string
	whole []part           // staged once, for all steps
	n     int              // number of steps
	parts func(int) []part // of a step
	do    func(i int, whole, parts []*kernels.Mat)
}

// run queues a job. What does not fit is the stream's error.
func (s *Stream) run(j job) {
	whole, err := s.mem.lay(j.whole)
	if err != nil {
		s.fail(j.op, err)
		return
	}
	steps, parts, slot := make([]*layout, j.n), make([][]part, j.n), 0
	for i := range steps {
		parts[i] = j.parts(i)
		if steps[i], err = s.mem.lay(parts[i]); err != nil {
			s.fail(j.op, err)
			return
		}
		slot = max(slot, steps[i].bytes)
	}
	slot += slack
	base := s.mem.cfg.Arena
	whole.bytes += slack
	left := int(s.mem.cfg.Bytes) - whole.bytes
	depth := min(slots, j.n, left/slot)
	if depth < min(j.n, 1) || left < 0 {
		s.fail(j.op, s.tooSmall(whole.bytes, slot))
		return
	}
	s.begin()
	apart(whole, j.whole, nil, nil, base)
	s.upload(whole, base)
	w := mats(whole, j.whole, base)
	var is, now []uintptr
	for i, m := range w {
		if m != nil && m.Rows > 0 {
			is, now = append(is, j.whole[i].m.Addr), append(now, m.Addr)
		}
	}
	first := s.mem.cfg.Arena + uintptr(whole.bytes)
	var computed, gone [slots]Mark
	for i, l := range steps {
		k := i % max(depth, 1)
		at := first + uintptr(k*slot)
		apart(l, parts[i], is, now, at)
		if i >= depth {
			s.Await(In, computed[k])
			s.Await(In, gone[k])
			s.Await(Compute, gone[k])
		}
		if i > 0 && l.rereads(steps[i-1]) {
			s.Await(In, gone[(i-1)%depth])
		}
		s.upload(l, at)
		j.do(i, w, mats(l, parts[i], at))
		s.gather(l, at)
		computed[k] = s.Mark(Compute)
		gone[k] = computed[k]
		if s.download(l, at, computed[k]) {
			gone[k] = s.Mark(Out)
		}
	}
	s.gather(whole, base)
	s.download(whole, base, s.Mark(Compute))
}

// slack is room in each slot for moving 16 regions nudges times.
const (
	nudge  = kernels.Align * 4
	nudges = 8
	slack  = 16 * nudges * nudge
)

// apart moves the regions of a slot where a matrix of which only some rows are staged
// would seem to begin where another one does.
func apart(l *layout, parts []part, whole, at []uintptr, slot uintptr) {
	for range nudges {
		if !clash(l, parts, whole, at, slot) {
			return
		}
		for i, r := range l.regions {
			r.at += (i + 1) * nudge
			r.raw += (i + 1) * nudge
		}
	}
}

// clash says whether two operands of different places would begin at one address. whole
// are the places of those of the whole op, at where they are staged.
func clash(l *layout, parts []part, whole, at []uintptr, slot uintptr) bool {
	is, now := whole[:len(whole):len(whole)], at[:len(at):len(at)]
	for i, m := range mats(l, parts, slot) {
		if m == nil || m.Rows == 0 || m.Cols == 0 {
			continue
		}
		for k := range now {
			if now[k] == m.Addr && is[k] != parts[i].m.Addr && m.Addr != 0 {
				return true
			}
		}
		is, now = append(is, parts[i].m.Addr), append(now, m.Addr)
	}
	return false
}

func mats(l *layout, parts []part, at uintptr) []*kernels.Mat {
	out := make([]*kernels.Mat, len(parts))
	for i, p := range parts {
		out[i] = l.mat(i, p, at)
	}
	return out
}

// begin lets the copies of an op wait for those of the ops before it, and for what
// still uses the arena.
func (s *Stream) begin() {
	s.Await(In, s.Mark(Compute))
	out := s.Mark(Out)
	s.Await(In, out)
	s.Await(Compute, out)
}

// upload stages what a layout reads, and lets the computing wait for it.
func (s *Stream) upload(l *layout, at uintptr) {
	some := false
	for _, r := range l.regions {
		if r.mode&reads == 0 {
			continue
		}
		r.chunks(func(off int, host []float32) {
			some = true
			s.mem.up.Add(int64(len(host)) * 4)
			s.Upload(at+uintptr(off), host)
		})
	}
	if !some {
		return
	}
	s.Await(Compute, s.Mark(In))
	for _, r := range l.regions {
		if r.mode&reads != 0 {
			r.tilesOf(at, func(raw, rows *kernels.Mat) { s.Lower.Copy(rows, raw) })
		}
	}
}

// gather brings what was written into the form in which it crosses.
func (s *Stream) gather(l *layout, at uintptr) {
	for _, r := range l.regions {
		if r.mode&writes == 0 {
			continue
		}
		if p := r.padding(at); p != nil {
			s.Lower.Zero(p)
		}
		r.tilesOf(at, func(raw, rows *kernels.Mat) { s.Lower.Copy(raw, rows) })
	}
}

// download brings back what a layout writes, once the computing has come to a mark, and
// says whether there was anything.
func (s *Stream) download(l *layout, at uintptr, computed Mark) bool {
	some := false
	for _, r := range l.regions {
		if r.mode&writes == 0 {
			continue
		}
		r.chunks(func(off int, host []float32) {
			if !some {
				s.Await(Out, computed)
			}
			some = true
			s.mem.down.Add(int64(len(host)) * 4)
			s.Download(host, at+uintptr(off))
		})
	}
	return some
}

// tooSmall is the error of an op whose operands do not fit the arena.
func (s *Stream) tooSmall(whole, slot int) error {
	return fmt.Errorf("staging its operands takes %d bytes at once (%d of them for the whole op), and the device has %d for that; give it %d more bytes (--gpu-memory), or use more partitions",
		whole+slot, whole, s.mem.cfg.Bytes, int64(whole+slot)-s.mem.cfg.Bytes)
}

// pieces cuts n rows so that a piece's slot is small enough to have several under way,
// and not so small that a copy is dominated by its start.
func (s *Stream) pieces(rows kernels.Span, whole []part, parts func(kernels.Span) []part) []kernels.Span {
	n := rows.Len()
	if n == 0 {
		return []kernels.Span{rows}
	}
	size := func(k int) int {
		l, err := s.mem.lay(parts(kernels.Span{Lo: rows.Lo, Hi: rows.Lo + k}))
		if err != nil {
			return 0 // run meets it again
		}
		return l.bytes + slack
	}
	left := int(s.mem.cfg.Bytes)
	if l, err := s.mem.lay(whole); err == nil {
		left -= l.bytes + slack
	}
	room := min(left/slots, pieceBytes)
	k := n
	if per := size(n) / n; per > 0 {
		k = min(n, max(room/per, 1))
	}
	for k > 1 && size(k) > room {
		k -= max(k/8, 1)
	}
	if k >= rowGrain {
		k = k / rowGrain * rowGrain
	}
	var cut []kernels.Span
	for lo := rows.Lo; lo < rows.Hi; lo += k {
		cut = append(cut, kernels.Span{Lo: lo, Hi: min(lo+k, rows.Hi)})
	}
	return cut
}

const (
	pieceBytes = 32 << 20
	rowGrain   = 128 // rows of a tile of the device's products
)
