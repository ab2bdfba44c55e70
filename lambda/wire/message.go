// Package wire is what a graph server and its Lambda workers say to each other, and
// the stream on which they say it.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"dorylus/engine"
)

// Version of the protocol. Both sides must have the same one.
const Version = 4

// MaxMessage bounds a message, in bytes.
const MaxMessage = 64 << 20

// maxHead bounds a message's head, in bytes, maxParts the number of its parts.
const (
	maxHead  = 4 << 20
	maxParts = 1 << 16
)

// Message is a head, of which exactly one field is set, and parts: frames of tensors
// (lambda/codec) in the order that the head's kind gives.
type Message struct {
	Hello  *Hello  `json:"hello,omitempty"`
	Job    *Job    `json:"job,omitempty"`
	Shard  *Shard  `json:"shard,omitempty"`
	Chunk  *Chunk  `json:"chunk,omitempty"`
	Weight *Weight `json:"weight,omitempty"`
	Task   *Task   `json:"task,omitempty"`
	Block  *Block  `json:"block,omitempty"`
	Cancel *Cancel `json:"cancel,omitempty"`
	Stop   *Stop   `json:"stop,omitempty"`
	Result *Result `json:"result,omitempty"`
	Fail   *Fail   `json:"fail,omitempty"`
	Bye    *Bye    `json:"bye,omitempty"`

	Parts [][]byte `json:"-"`
}

// Hello is a worker's first message.
type Hello struct {
	Version int    `json:"version"`
	Token   string `json:"token"`
	Worker  int    `json:"worker"` // the number that its invocation gave it
	// Device says whose bits its results have.
	Device string `json:"device"`
}

// Shard begins a shard (lambda/shard): Head is its head, and the parts are the first of
// its frames.
type Shard struct {
	Head json.RawMessage `json:"head"`
	// More says that a Chunk follows; nothing else may come before it, but for Cancel.
	More bool `json:"more,omitempty"`
}

// Chunk brings the next frames of the shard that has begun.
type Chunk struct {
	N    int  `json:"n"` // counted from 1
	More bool `json:"more,omitempty"`
}

// Weight brings one parameter, of the content Hash: one part.
type Weight struct {
	Param int    `json:"param"`
	Hash  uint64 `json:"hash"`
}

// Task begins a task: steps to run on an interval, all but the last again since
// their results are lost or were never kept. A Block message follows for each step
// and block, in that order, and the results of the last step go back block by block.
type Task struct {
	ID       int64       `json:"id"` // of the attempt: every one has another
	Pass     engine.Pass `json:"pass"`
	Interval int         `json:"interval"`
	Epoch    int         `json:"epoch"`
	// Walk numbers the interval's walks through the program's steps: what a buffer holds
	// counts in the walk that has made it only. An epoch would not do, since evaluations
	// of other weights may have the same one.
	Walk  int64  `json:"walk"`
	Steps []Step `json:"steps"`
	// Params are the parameters that the steps read.
	Params []Weight `json:"params,omitempty"`
}

// Step is one step of a task.
type Step struct {
	Step int `json:"step"`
	// Found are the buffers that the worker is thought to hold, as the step of Writer
	// of this walk has left them.
	Found []Found `json:"found,omitempty"`
	// Blocks are those of the interval that have rows in the step, from 0.
	Blocks []int `json:"blocks"`
	// Ships and Grads are what the graph server wants: buffers, gradients; only of
	// the last step.
	Ships []int `json:"ships,omitempty"`
	Grads []int `json:"grads,omitempty"`
	// Sums cut the interval's blocks into runs, [0,Sums[0]), [Sums[0],Sums[1]) and so on:
	// of each run one sum of each of Grads goes back, made in pairs from the run's first
	// block on, like that of the blocks below a node of the graph server's tree.
	Sums []int `json:"sums,omitempty"`
}

// Found names a buffer's content.
type Found struct {
	Buf    int `json:"buf"`
	Writer int `json:"writer"`
}

// Block brings a block's rows of Bufs, one part each, and starts the step on it.
type Block struct {
	ID    int64 `json:"id"`
	Step  int   `json:"step"`
	Block int   `json:"block"` // of the interval, from 0
	// Bufs are the buffers that come with it, left by step Writers of this walk.
	Bufs []Found `json:"bufs,omitempty"`
}

// Cancel calls off the attempt ID: the worker drops what it has begun of it, behind the
// block under way, and answers Fail with Off. It may cross the attempt's results.
type Cancel struct {
	ID int64 `json:"id"`
}

// Result is what the last step has made of a block: Ships of the Task, one part each,
// and, with the last of a run's Blocks, the run's sums of Grads.
type Result struct {
	ID    int64   `json:"id"`
	Block int     `json:"block"`
	Loss  float64 `json:"loss"`
	// Last says that the task is done.
	Last bool `json:"last,omitempty"`
}

// Fail ends a task. Lost says that the worker no longer holds what it was thought to, Off
// that the graph server wanted it so.
type Fail struct {
	ID   int64  `json:"id"`
	Text string `json:"text"`
	Lost bool   `json:"lost,omitempty"`
	Off  bool   `json:"off,omitempty"`
}

// Stop asks a worker to leave.
type Stop struct {
	Why string `json:"why"`
}

// Bye is a worker's last message: it takes no task any more.
type Bye struct {
	Why   string `json:"why"`
	Tasks int    `json:"tasks"`
}

// Append appends the message's encoding: the head's length (4 bytes, little-endian), the
// head as JSON, and each part with its length (4 bytes).
func (m *Message) Append(dst []byte) ([]byte, error) {
	pieces, err := m.Pieces()
	if err != nil {
		return nil, err
	}
	for _, p := range pieces {
		dst = append(dst, p...)
	}
	return dst, nil
}

// Size is about how long the encoding is.
func (m *Message) Size() int {
	n := 256
	for _, p := range m.Parts {
		n += 4 + len(p)
	}
	return n
}

// Parse reads an encoding. The parts share b's memory.
func Parse(b []byte) (*Message, error) {
	head, rest, err := piece(b)
	if err != nil {
		return nil, fmt.Errorf("read the head of a message of %d bytes: %w", len(b), err)
	}
	if len(head) > maxHead {
		return nil, fmt.Errorf("read a message of %d bytes: its head has %d, at most %d may be", len(b), len(head), maxHead)
	}
	m := &Message{}
	if err := json.Unmarshal(head, m); err != nil {
		return nil, fmt.Errorf("read a message's head: %w", err)
	}
	for len(rest) > 0 {
		if len(m.Parts) == maxParts {
			return nil, fmt.Errorf("read a message of %d bytes: it has more than %d parts", len(b), maxParts)
		}
		var p []byte
		if p, rest, err = piece(rest); err != nil {
			return nil, fmt.Errorf("read part %d of a message: %w", len(m.Parts), err)
		}
		m.Parts = append(m.Parts, p)
	}
	return m, nil
}

func piece(b []byte) (p, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%d bytes are left, too few for a length", len(b))
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > int64(len(b)-4) {
		return nil, nil, fmt.Errorf("it says %d bytes, %d are left", n, len(b)-4)
	}
	return b[4 : 4+n], b[4+n:], nil
}
