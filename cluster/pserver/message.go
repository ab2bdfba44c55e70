package pserver

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/kernels"
	"dorylus/lambda/codec"
)

// protocol is the version of what follows. Both sides must have the same one.
const protocol = 2

// The kinds of messages. more precedes any other: parts of a message that is too large
// for one frame.
const (
	kindMore uint16 = iota + 1
	// From a client.
	kindHello // the first on each stream
	kindStart // what the run starts with, of the leader
	kindPush
	kindAck
	kindNorm // of the leader
	kindAsk
	kindBye
	// From a shard.
	kindWelcome // the answer to hello
	kindWeights
	kindReady // to the leader
	kindState // the answer to ask
	kindDone  // the answer to bye
	kindFail  // why the run has ended for all
	kindStop  // the shard is asked to go: the run should end, with a checkpoint
)

// job is what all clients must agree on.
type job struct {
	Specs  []model.ParamSpec `json:"specs"`
	Optim  optim.Config      `json:"optim"`
	Blocks int               `json:"blocks"`
	Graphs int               `json:"graphs"`
	Shards int               `json:"shards"`
	Ahead  int               `json:"ahead"`
}

// hello is who calls, and what it has.
type hello struct {
	Protocol int    `json:"protocol"`
	Run      string `json:"run"`
	Rank     int    `json:"rank"`
	Shard    int    `json:"shard"`
	// Process tells the client's process from another of the same rank; Server is the
	// shard's that it has met before, if any.
	Process string `json:"process"`
	Server  string `json:"server,omitempty"`
	Lo      int    `json:"lo"` // own blocks [Lo,Hi)
	Hi      int    `json:"hi"`
	Have    int    `json:"have"` // the newest version it has of this shard, -1 for none
	Acked   int    `json:"acked"`
	Job     job    `json:"job"`
}

// welcome answers hello. Start says that the leader has to send kindStart.
type welcome struct {
	Server string `json:"server"`
	Start  bool   `json:"start,omitempty"`
}

// start is what a run starts with. Parts: the slices of the weights, then those of each
// slot, if Moments.
type start struct {
	Version int  `json:"version"`
	Step    int  `json:"step"`
	Moments bool `json:"moments,omitempty"`
}

// push brings sums over blocks. Parts: the slices of those that are not Nil.
type push struct {
	Epoch  int    `json:"epoch"`
	Grads  []grad `json:"grads,omitempty"`
	Losses []loss `json:"losses,omitempty"`
}

type grad struct {
	Param int  `json:"p"` // of the model
	Block int  `json:"b"`
	Span  int  `json:"n"`
	Nil   bool `json:"z,omitempty"`
}

// loss has the bits of a float64, which may be no number.
type loss struct {
	Block int    `json:"b"`
	Span  int    `json:"n"`
	Bits  uint64 `json:"x"`
}

// ack says that the client has a version of all shards.
type ack struct {
	Version int `json:"version"`
}

// norm is that of all gradients of an epoch.
type norm struct {
	Epoch int    `json:"epoch"`
	Bits  uint64 `json:"x"`
}

// ask wants the state of a version.
type ask struct {
	Version int `json:"version"`
}

// bye ends a client's part, for a reason if something is wrong. Again: the run was stopped
// before its end.
type bye struct {
	Why   string `json:"why,omitempty"`
	Again bool   `json:"again,omitempty"`
}

// failure is why the run has ended.
type failure struct {
	Why string `json:"why"`
}

// weights brings a version: the slices are the parts.
type weights struct {
	Update engine.Update `json:"update"`
}

// ready asks for the norm of an epoch. Parts: the squares of the slices' rows as float64,
// those of running statistics left out, all one behind the other.
type ready struct {
	Epoch int `json:"epoch"`
}

// state is a version with its moments. Parts: the slices of the weights, then of each slot.
// Peak is the most memory that the server has had so far, 0 where it does not know.
type state struct {
	Version int   `json:"version"`
	Step    int   `json:"step"`
	Peak    int64 `json:"peak_memory_bytes,omitempty"`
}

// chunk is the most bytes of a part.
const chunk = 8 << 20

// newMessage is a message of any number of parts.
func newMessage(kind uint16, head any, parts ...[]byte) *rpc.Message {
	b, err := json.Marshal(head)
	if err != nil {
		panic(fmt.Sprintf("pserver: head of kind %d: %v", kind, err)) // a field that JSON does not know: a bug
	}
	return &rpc.Message{Kind: kind, Head: b, Parts: parts}
}

// readHead reads a message's head, of the kind that is wanted.
func readHead(m *rpc.Message, kind uint16, into any) error {
	if m.Kind != kind {
		return fmt.Errorf("a message of kind %d, want %d", m.Kind, kind)
	}
	if err := json.Unmarshal(m.Head, into); err != nil {
		return fmt.Errorf("read the head of a message of kind %d: %w", kind, err)
	}
	return nil
}

// send sends m, in several frames if it is too large for one.
func send(s rpc.Stream, m *rpc.Message) error {
	parts := m.Parts
	for {
		n, size := 0, len(m.Head)+64
		for n < len(parts) && n < 1024 && size+len(parts[n]) <= rpc.MaxMessage/2 {
			size += len(parts[n]) + 4
			n++
		}
		if n == len(parts) {
			return s.Send(&rpc.Message{Kind: m.Kind, Head: m.Head, Parts: parts})
		}
		if n == 0 {
			return fmt.Errorf("send a message of kind %d: a part has %d bytes", m.Kind, len(parts[0]))
		}
		if err := s.Send(&rpc.Message{Kind: kindMore, Parts: parts[:n]}); err != nil {
			return err
		}
		parts = parts[n:]
	}
}

// receive is the next message, of at most limit bytes of parts.
func receive(s rpc.Stream, limit int64) (*rpc.Message, error) {
	var parts [][]byte
	for {
		m, err := s.Recv()
		if err != nil {
			return nil, err
		}
		for _, p := range m.Parts {
			limit -= int64(len(p)) + 24
		}
		if limit < 0 {
			return nil, rpc.Refuse("a message of kind %d is larger than anything that is due", m.Kind)
		}
		if parts = append(parts, m.Parts...); m.Kind != kindMore {
			m.Parts = parts
			return m, nil
		}
	}
}

// size is what m counts as, in bytes.
func size(m *rpc.Message) int64 {
	n := int64(len(m.Head))
	for _, p := range m.Parts {
		n += int64(len(p))
	}
	return n
}

// limit bounds a message about a model: its weights and two slots, framed.
func limit(specs []model.ParamSpec) int64 {
	n := int64(1 << 20)
	for _, s := range specs {
		n += 3*(4*values(s)+8*int64(s.Rows)) + 4096
	}
	return 2 * n
}

// appendTensor adds the frames of m to parts.
func appendTensor(e *codec.Encoder, parts [][]byte, key codec.Key, m *kernels.Mat) [][]byte {
	for f := range e.Chunks(key, m, chunk) {
		parts = append(parts, f)
	}
	return parts
}

var errParts = errors.New("there are fewer parts than tensors")

// readTensor fills m from the first of parts and is those after them.
func readTensor(parts [][]byte, m *kernels.Mat) ([][]byte, error) {
	a := codec.NewAssembler(m)
	for first := true; first || !a.Done(); first = false {
		if len(parts) == 0 {
			return nil, errParts
		}
		if _, fresh, err := a.Add(parts[0]); err != nil {
			return nil, err
		} else if !fresh {
			return nil, errors.New("a part of a tensor comes twice")
		}
		parts = parts[1:]
	}
	return parts, nil
}

// readTensors fills all of mats from parts, of which none may be left.
func readTensors(parts [][]byte, mats []*kernels.Mat) error {
	var err error
	for i, m := range mats {
		if parts, err = readTensor(parts, m); err != nil {
			return fmt.Errorf("tensor %d of %d: %w", i, len(mats), err)
		}
	}
	if len(parts) > 0 {
		return fmt.Errorf("%d parts follow the last tensor", len(parts))
	}
	return nil
}

// encodeSquares are the parts of kindReady.
func encodeSquares(squares [][]float64) [][]byte {
	var b []byte
	for _, rows := range squares {
		for _, x := range rows {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	var parts [][]byte
	for len(b) > chunk {
		parts, b = append(parts, b[:chunk]), b[chunk:]
	}
	return append(parts, b)
}

// decodeSquares puts a shard's squares into those of the whole model.
func decodeSquares(parts [][]byte, specs []model.ParamSpec, slices []Slice, into [][]float64) error {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	for _, s := range slices {
		if specs[s.Param].Stat {
			continue
		}
		for r := s.Rows.Lo; r < s.Rows.Hi; r++ {
			if len(b) < 8 {
				return io.ErrUnexpectedEOF
			}
			into[s.Param][r], b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
		}
	}
	if len(b) > 0 {
		return fmt.Errorf("%d bytes follow the squares", len(b))
	}
	return nil
}
