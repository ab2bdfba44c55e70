package local

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// request is what shall run.
type request struct {
	id      string
	fn      *function
	arn     string
	trace   string
	client  string // client context, JSON
	payload []byte
	faults  faults
	sink    sink
}

// call is one run of a request; an asynchronous one, or one that chaos doubles,
// may have several.
type call struct {
	request
	deadline time.Time

	// over closes when the environment is done with the call, replied or not.
	over chan struct{}
	// early closes when a reply comes that chaos will not let through.
	early     chan struct{}
	earlyOnce sync.Once

	// mu is held while a reply is read, so that a reply and the end of the call
	// (timeout, crash) never overlap.
	mu struct {
		sync.Mutex
		closed bool // the call has ended: no reply counts any more
		done   bool // one reply came
		reply  reply
	}
}

// reply is how a call ended for its caller.
type reply struct {
	payload   []byte // nil if it was streamed
	bytes     int64
	streamed  int64  // bytes past the first 6 MiB of a streamed reply
	errorType string // of a function error; "": success
}

// sink takes a worker's reply.
type sink interface {
	// take reads the reply to its end. tooLarge says that it went past the limit.
	take(body io.Reader, c *call, e *environment) (r reply, tooLarge bool, err error)
}

// newCall prepares a run of q.
func newCall(q request) *call {
	return &call{request: q, over: make(chan struct{}), early: make(chan struct{})}
}

// struckEarly says whether chaos replaces the reply that has just come.
func (c *call) struckEarly() bool {
	if !c.faults.crash && !c.faults.hang {
		return false
	}
	c.earlyOnce.Do(func() { close(c.early) })
	return true
}

// settle ends the call and returns the reply that came in time, if one did.
func (c *call) settle() (r reply, ok bool) {
	close(c.over)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	return c.mu.reply, c.mu.done
}

// buffered holds a reply of at most MaxReply bytes.
type buffered struct{}

func (buffered) take(body io.Reader, c *call, e *environment) (reply, bool, error) {
	b, err := io.ReadAll(io.LimitReader(body, MaxReply+1))
	if err != nil {
		return reply{}, false, err
	}
	if len(b) > MaxReply {
		return reply{
			payload:   functionError("Function.ResponseSizeTooLarge", "Response payload size exceeded maximum allowed payload size (%d bytes).", MaxReply),
			errorType: "Function.ResponseSizeTooLarge",
		}, true, nil
	}
	e.down.wait(int64(len(b)), c.over)
	return reply{payload: b, bytes: int64(len(b))}, false, nil
}

// newID is a random UUID, as AWS numbers requests.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func newHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// newTrace is an X-Ray trace header.
func newTrace(now time.Time) string {
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", now.Unix(), newHex(12), newHex(8))
}

var errLate = errors.New("the call has ended")
