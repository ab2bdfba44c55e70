package ghost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/lambda/codec"
)

// overhead is what a message without rows counts against the window, in bytes.
const overhead = 128

// encoders are those of rows that may be rounded, and of those that must not be.
type encoders struct{ wire, exact *codec.Encoder }

func newEncoders(o codec.Options) (e encoders, err error) {
	if e.wire, err = codec.NewEncoder(o); err != nil || o.Wire == codec.FP32 {
		e.exact = e.wire
		return e, err
	}
	o.Wire = codec.FP32
	e.exact, err = codec.NewEncoder(o)
	return e, err
}

// of is the one for m.
func (e encoders) of(m *engine.RowMsg) *codec.Encoder {
	if m.Exact {
		return e.exact
	}
	return e.wire
}

// wireOf is the precision in which m travels.
func (c *Config) wireOf(m *engine.RowMsg) codec.DType {
	if m.Exact {
		return codec.FP32
	}
	return c.Wire
}

// rows is a RowMsg as an item of a link. Its frames are made when they are sent, again
// where they are sent again, so that what waits costs no memory but its values.
type rows struct {
	m     *engine.RowMsg
	n     int // rows
	enc   *codec.Encoder
	chunk int // rows per message
}

// newRows checks m.
func newRows(m *engine.RowMsg, c *Config, enc *codec.Encoder) (*rows, error) {
	r := &rows{m: m, enc: enc, chunk: 1}
	switch {
	case int(m.Pass) >= engine.Passes || m.Interval < 0 || m.Step < 0 || m.Epoch < 0 || m.Cols < 0:
		return nil, fmt.Errorf("send %s: a number in it is out of range", name(m))
	case m.Finished && len(m.Data) > 0:
		return nil, fmt.Errorf("send %s: it has %d values, want none", name(m), len(m.Data))
	case len(m.Data) > 0 && (m.Cols == 0 || len(m.Data)%m.Cols != 0):
		return nil, fmt.Errorf("send %s: %d values are no rows of %d", name(m), len(m.Data), m.Cols)
	case int64(len(m.Data))*4 > c.Max:
		return nil, fmt.Errorf("send %s: %d values need %d bytes, at most %d may be; use more intervals", name(m), len(m.Data), int64(len(m.Data))*4, c.Max)
	}
	if len(m.Data) > 0 {
		r.n = len(m.Data) / m.Cols
		width := 4
		if c.wireOf(m) != codec.FP32 {
			width = 2
		}
		r.chunk = max(c.Chunk/(m.Cols*width), 1)
	}
	return r, nil
}

// Size implements link.Item.
func (r *rows) Size() int64 { return sizeOf(r.n, r.m.Cols) }

func sizeOf(n, cols int) int64 { return int64(n)*int64(cols)*4 + overhead }

// Chunks implements link.Item.
func (r *rows) Chunks() int { return max((r.n+r.chunk-1)/r.chunk, 1) }

// String implements link.Item.
func (r *rows) String() string { return name(r.m) }

// name says which message m is.
func name(m *engine.RowMsg) string {
	pass := "training"
	if m.Pass == engine.Evaluation {
		pass = "evaluation"
	}
	if m.Finished {
		return fmt.Sprintf("the end of interval %d in %s epoch %d", m.Interval, pass, m.Epoch)
	}
	return fmt.Sprintf("the rows of step %d of interval %d in %s epoch %d", m.Step, m.Interval, pass, m.Epoch)
}

// Encode implements link.Item: the first message has the head, each has a frame of rows
// if there are any.
func (r *rows) Encode(yield func(*rpc.Message) bool) {
	head := r.head()
	if r.n == 0 {
		yield(&rpc.Message{Head: head})
		return
	}
	mat := &kernels.Mat{Rows: r.n, Cols: r.m.Cols, Stride: r.m.Cols, Host: r.m.Data}
	key := codec.Key(uint64(r.m.Pass)<<32 | uint64(uint32(r.m.Step)))
	for lo := 0; lo < r.n; lo += r.chunk {
		span := kernels.Span{Lo: lo, Hi: min(lo+r.chunk, r.n)}
		if !yield(&rpc.Message{Head: head, Parts: [][]byte{r.enc.AppendRows(nil, key, mat, span)}}) {
			return
		}
		head = nil
	}
}

// The head: pass, flags, and as varints interval, step, epoch, columns and rows.
const (
	flagFinished = 1 << iota
	flagExact
)

func (r *rows) head() []byte {
	flags := byte(0)
	if r.m.Finished {
		flags = flagFinished
	}
	if r.m.Exact {
		flags |= flagExact
	}
	head := []byte{byte(r.m.Pass), flags}
	for _, n := range [...]int{r.m.Interval, r.m.Step, r.m.Epoch, r.m.Cols, r.n} {
		head = binary.AppendUvarint(head, uint64(n))
	}
	return head
}

var errHead = errors.New("its head is no head of rows")

// readHead is head backwards: a RowMsg without Data, and its number of rows.
func readHead(head []byte) (*engine.RowMsg, int, error) {
	if len(head) < 2 || int(head[0]) >= engine.Passes || head[1]&^(flagFinished|flagExact) != 0 {
		return nil, 0, errHead
	}
	m := &engine.RowMsg{Pass: engine.Pass(head[0]), Finished: head[1]&flagFinished != 0, Exact: head[1]&flagExact != 0}
	head = head[2:]
	var n int
	for _, to := range [...]*int{&m.Interval, &m.Step, &m.Epoch, &m.Cols, &n} {
		v, k := binary.Uvarint(head)
		if k <= 0 || v > math.MaxInt32 {
			return nil, 0, errHead
		}
		*to, head = int(v), head[k:]
	}
	if len(head) > 0 || m.Finished && n > 0 || n > 0 && m.Cols == 0 {
		return nil, 0, errHead
	}
	return m, n, nil
}

// arriving is a RowMsg that is being put together.
type arriving struct {
	m   *engine.RowMsg
	n   int
	mat *kernels.Mat
	asm *codec.Assembler
}

// decoder implements link.Decoder.
type decoder struct {
	c      *Config
	self   int
	wanted func(m *engine.RowMsg, rows int) error
	got    func(from int, m *engine.RowMsg, msg *rpc.Message, last bool)
}

// Size implements link.Decoder.
func (d *decoder) Size(from int, first *rpc.Message) (int64, error) {
	m, n, err := readHead(first.Head)
	if err != nil {
		return 0, err
	}
	size := sizeOf(n, m.Cols) // below 2^31 each: no overflow
	if size-overhead > d.c.Max {
		return 0, fmt.Errorf("%s: %d x %d values need %d bytes, at most %d may be", name(m), n, m.Cols, size-overhead, d.c.Max)
	}
	m.From, m.To = from, d.self
	if d.wanted != nil {
		if err := d.wanted(m, n); err != nil {
			return 0, fmt.Errorf("%s, %d rows of %d: %w", name(m), n, m.Cols, err)
		}
	}
	return size, nil
}

// Add implements link.Decoder.
func (d *decoder) Add(from int, v *arriving, i, count int, msg *rpc.Message) (*arriving, error) {
	if i == 0 {
		m, n, err := readHead(msg.Head)
		if err != nil {
			return nil, err
		}
		m.From, m.To = from, d.self
		v = &arriving{m: m, n: n}
		if n > 0 {
			m.Data = make([]float32, n*m.Cols)
			v.mat = &kernels.Mat{Rows: n, Cols: m.Cols, Stride: m.Cols, Host: m.Data}
			v.asm = codec.NewAssembler(v.mat)
		}
	} else if len(msg.Head) > 0 {
		return nil, errHead
	}
	if err := v.add(msg, d.c.wireOf(v.m), i, count); err != nil {
		return nil, fmt.Errorf("%s: %w", name(v.m), err)
	}
	d.got(from, v.m, msg, i == count-1)
	return v, nil
}

func (v *arriving) add(msg *rpc.Message, wire codec.DType, i, count int) error {
	if v.asm == nil {
		if count != 1 || len(msg.Parts) > 0 {
			return fmt.Errorf("%d messages of %d parts, without rows", count, len(msg.Parts))
		}
		return nil
	}
	if len(msg.Parts) != 1 {
		return fmt.Errorf("message %d has %d frames, want 1", i, len(msg.Parts))
	}
	h, err := codec.ReadHeader(msg.Parts[0], codec.Limits{MaxBytes: max(int64(v.n)*int64(v.m.Cols)*4, int64(v.n))})
	if err != nil {
		return err
	}
	if h.DType != wire {
		return fmt.Errorf("rows in %v, want %v", h.DType, wire)
	}
	if _, fresh, err := v.asm.Add(msg.Parts[0]); err != nil {
		return err
	} else if !fresh {
		return fmt.Errorf("message %d brings rows again", i)
	}
	if i == count-1 {
		return v.asm.Err()
	}
	return nil
}
