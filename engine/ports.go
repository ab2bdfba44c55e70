package engine

import (
	"context"
	"time"

	"dorylus/engine/model"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Pass is a kind of walk over the graph.
type Pass uint8

// The passes of a run.
const (
	Training Pass = iota
	Evaluation
	Passes int = iota
)

// Job is what a Backend that does its work elsewhere has to know of the run.
type Job struct {
	Model   model.Config
	Program *model.Program
	// Intervals is how many of them each pass has, in all.
	Intervals [Passes]int
	// Blocks are the contexts of all blocks of an interval of this partition, in
	// order: what does not change from task to task is in them. Those of an interval of
	// another partition are none.
	Blocks func(p Pass, interval int) []*model.Ctx
}

// Own is how many intervals of a pass this partition has.
func (j *Job) Own(p Pass) int {
	n := 0
	for i := range j.Intervals[p] {
		if len(j.Blocks(p, i)) > 0 {
			n++
		}
	}
	return n
}

// Binder is a Backend that wants to know the job: Bind is called once, before Run.
type Binder interface {
	Bind(ctx context.Context, j *Job) error
}

// Work is a tensor task bound to its data. Only the rows of its blocks may be
// touched, and only until Run returns.
type Work struct {
	task.Task
	Pass Pass
	// Ops are the step's ops that are due: all of them, or in an evaluation those
	// before the loss.
	Step *model.Step
	Ops  []model.Op
	// Blocks has one context per block of the interval with rows to compute; the
	// backend sets S and Scratch.
	Blocks []*model.Ctx
	// Params are the weights that the interval has pinned for this epoch; none where
	// the step reads none.
	Params Weights
	// Pinned are those weights for whatever step: a backend asks for them when it has
	// to run an earlier step of the epoch again.
	Pinned func(ctx context.Context) (Weights, error)
	// Sums, which only a Summer gets, cut the interval's blocks, by their numbers in the
	// whole graph, into runs below nodes of the tree in which sums over blocks are made:
	// the sum of a run's gradients goes into those of the first of Blocks in it; the
	// others have none. nil: each of Blocks has its own.
	Sums []task.Range
}

// Backend runs tensor tasks: the server's own cores, a GPU, or Lambda workers.
type Backend interface {
	Name() string
	// Local says that the backend uses the graph server's own cores, so that its
	// tasks and the graph tasks share one pool of workers.
	Local() bool
	// Slots is the useful concurrency now; it may move. Ignored if Local.
	Slots() int
	// Run does the work and blocks until it is done. It is safe for concurrent
	// use. After an error the task may be run again: a backend that can fail for
	// a passing reason leaves the buffers as they were until it has the whole
	// result.
	Run(ctx context.Context, w *Work) error
	Close() error
}

// Summer is a Backend for which it pays to add up the gradients of several blocks before
// it gives them.
type Summer interface {
	// Sums says whether Run heeds Work.Sums.
	Sums() bool
	// Tails says whether the last run may be of any number of blocks where it ends with the
	// last one of the graph.
	Tails() bool
}

// Reporter is a Backend in which things happen that nobody has asked for: workers come
// and leave, tasks are started twice, invocations are billed. Only one goroutine at a
// time may call a Listener, so the one that does takes the events from the backend.
type Reporter interface {
	// Reports has a value while Take may have something new.
	Reports() <-chan struct{}
	// Take gives the events since the last call, in order. After Close it gives what
	// has happened until then: whoever closes a backend asks once more.
	Take() []Event
}

// Load is the state of a graph server's queues at one moment.
type Load struct {
	At time.Duration // since the run began
	// Graph tasks that are ready and wait for a core, and those that run on one; tensor
	// tasks that wait for a slot of the Backend, and those handed to it.
	GraphWaiting, GraphRunning, TensorWaiting, TensorRunning int
	// Done counts the tensor tasks that have ended, and Busy is their time, all
	// together.
	Done int64
	Busy time.Duration
}

// Watcher is a Backend that decides its Slots by the load. Observe is called by one
// goroutine whenever something has changed; it must be quick.
type Watcher interface {
	Observe(Load)
}

// RowMsg carries rows that one interval has published to another partition, or says
// that the interval has finished an epoch.
type RowMsg struct {
	From, To int // partitions
	Pass     Pass
	Interval int
	Step     int  // the SC step
	Epoch    int  // of an evaluation: the number of evaluations before it
	Finished bool // no rows: the interval has finished Epoch
	// Data are the rows that the receiver gathers, ascending in the one order, each of
	// Cols values without padding. Both sides know which they are.
	Cols int
	Data []float32
	// Mat has the rows instead of Data, in the memory of a device (Ferry): the sender's
	// where Send gets it, the receiver's where Recv gives it. Without padding.
	Mat *kernels.Mat
	// Exact: Data must arrive bit by bit, some of it is not numbers.
	Exact bool
}

// Exchanger moves rows between partitions.
type Exchanger interface {
	// Send delivers m to m.To at least once; receivers drop repeats by (Pass, Interval,
	// Step, Epoch). m must not change after the call. It may wait for a slow receiver.
	Send(ctx context.Context, m *RowMsg) error
	// Recv is the next message to this partition. An error is final.
	Recv(ctx context.Context) (*RowMsg, error)
}

// Expecter is an Exchanger that refuses what nobody wants before it takes memory for it.
type Expecter interface {
	// Expect says what may come from now on: check gets a message without its Data, and how
	// many rows it has; an error is the sender's fault, and ends the run. nil: nothing yet;
	// what comes waits on its way.
	Expect(check func(m *RowMsg, rows int) error)
}

// Ferry is an Exchanger between devices of one process that takes rows from device to
// device.
type Ferry interface {
	// Ferries says whether rows for partition to may be in Mat of a message.
	Ferries(to int) bool
	// Room is a matrix on this partition's device to put rows for a message into, without
	// padding, its contents undefined. Send has read it when it returns.
	Room(rows, cols int) (*kernels.Mat, error)
	// Free gives back a matrix of Room, or the Mat of a message that Recv has given, which
	// nobody may use any more.
	Free(m *kernels.Mat)
}

// Group is the graph servers of a run. All of them call Gather with the same keys.
type Group interface {
	// Rank is this server's partition, below Size.
	Rank() int
	Size() int
	// Gather gives every server what all have given under key, by rank. It waits for
	// all of them; an error names who is missing. A key is good once.
	Gather(ctx context.Context, key string, mine []byte) ([][]byte, error)
	// Collect gives server 0 what all have given under key, by rank, and the others
	// nil, once theirs has been taken. It is for what is too big to give to everybody.
	Collect(ctx context.Context, key string, mine []byte) ([][]byte, error)
	// Stop asks all servers, this one included, to end the run for a reason such as
	// "interrupted". The first reason counts.
	Stop(reason string)
	// Stopped has the reason, once, when somebody has called Stop.
	Stopped() <-chan string
}

// Weights is one version of the model's parameters, read-only.
type Weights struct {
	Version int // the updates of all epochs before this one are in it
	Mats    []*kernels.Mat
}

// BlockGrad is what one block adds to the gradient of one parameter, or the sum of what
// the blocks [Block,Block+Span) add, which are all those below one node of the tree in
// which sums over blocks are made (params.Subtrees). Span 0 is 1.
type BlockGrad struct {
	Param, Block, Span int
	G                  *kernels.Mat // nil: the blocks add nothing
}

// BlockLoss is what one block adds to the loss, or the blocks below one node, as in
// BlockGrad.
type BlockLoss struct {
	Block, Span int
	Loss        float64
}

// Push is what one finished tensor task sends to the parameter server.
type Push struct {
	ID     task.ID
	Grads  []BlockGrad
	Losses []BlockLoss
}

// Update announces a new weight version.
type Update struct {
	Version int     // the version that is there now
	Epoch   int     // the epoch whose gradients made it: Version-1
	Loss    float64 // the training loss of that epoch, before the update
	Seconds float64 // time spent in summing and updating
	LR      float64 // the learning rate of the update
	// GradNorm is the norm of all gradients together before they were clipped; 0
	// where nothing is clipped.
	GradNorm float64
}

// Params is the parameter server as a graph server sees it.
type Params interface {
	// Fetch gives an interval the newest weights the first time it asks in an
	// epoch, and the same ones whenever it asks again, until Release.
	Fetch(ctx context.Context, interval, epoch int) (Weights, error)
	// Release ends what Fetch pinned: the interval has finished the epoch.
	Release(interval, epoch int)
	// Buffer is an uninitialised matrix for a gradient of the parameter.
	Buffer(param int) *kernels.Mat
	// Push hands over gradients and losses; the server owns the matrices from
	// then on. Each (epoch, param, block) and (epoch, block) counts once;
	// repeats, of a sum with the same Span, are dropped. The last one of an
	// epoch makes the next version.
	Push(ctx context.Context, p *Push) error
	// Updates delivers each new version once, in order. It is closed by Close.
	Updates() <-chan Update
	Close() error
}
